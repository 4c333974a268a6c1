-- Every verdict of a revision, with the value that its status stands for. The
-- trial is NULL without its response, the position without its criterion.
select
    verdicts.verdict_id as key,
    verdicts.value,
    case verdicts.status when 'met' then 1.0 when 'partial' then 0.5 when 'unmet' then 0.0
    end::double as value_of_status,
    responses.trial::double as response_trial,
    criteria.position::double as criterion_position
from verdicts
left join responses using (response_id)
left join staging.rubric_criteria as criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
where verdicts.benchmark = $benchmark and verdicts.dataset_revision = $revision
order by verdicts.verdict_id
