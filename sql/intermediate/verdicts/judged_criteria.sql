-- One row: a criterion of a response in a model run, decided or not.
--
-- Coverage and details are computed from these rows. The criteria of a failed
-- response are included: they are wanted and not decided.
--
-- built as: view
-- depends on: intermediate.graded_verdicts, intermediate.wanted_responses, criteria
select
    wanted.model_run_id,
    wanted.response_id,
    wanted.benchmark,
    wanted.dataset_revision,
    wanted.task_id,
    wanted.trial,
    criteria.criterion_id,
    criteria.weight,
    verdicts.verdict_id,
    verdicts.value,
    case
        when verdicts.verdict_id is not null then verdicts.status
        when wanted.status <> 'ok' then 'no_response'
        else 'not_judged'
    end as status
from intermediate.wanted_responses as wanted
inner join criteria using (benchmark, dataset_revision, task_id)
left join intermediate.graded_verdicts as verdicts
    on wanted.response_id = verdicts.response_id
        and criteria.criterion_id = verdicts.criterion_id
        and criteria.content_hash = verdicts.criterion_hash
        and wanted.judging_id = verdicts.judging_id
