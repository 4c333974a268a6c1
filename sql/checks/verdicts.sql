-- Every verdict of a revision.
select
    verdicts.verdict_id as key,
    verdicts.task_id,
    verdicts.judge || ' on ' || verdicts.model || ', task ' || verdicts.task_id
    || ', criterion ' || verdicts.criterion_id || ': ' || verdicts.status
    || ', value ' || coalesce(verdicts.value::varchar, 'NULL') as note,
    coalesce(
        case verdicts.status
            when 'met' then verdicts.value = 1
            when 'partial' then verdicts.value = 0.5
            when 'unmet' then verdicts.value = 0
            else verdicts.value is null
        end,
        false
    ) as do_status_and_value_agree,
    responses.response_id is not null as has_response,
    criteria.criterion_id is not null as has_criterion
from verdicts
left join responses using (response_id)
left join staging.rubric_criteria as criteria
    on
        verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
where verdicts.benchmark = $benchmark and verdicts.dataset_revision = $revision
order by verdicts.verdict_id
