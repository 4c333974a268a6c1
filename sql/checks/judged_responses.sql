-- Every usable response of a revision that a judge has begun, with how many of
-- its criteria have a verdict.
select
    response_id || '/' || model_run_id as key,
    any_value(judged_criteria.task_id) as task_id,
    any_value(model_runs.judge) || ' on ' || any_value(model_runs.model)
    || ', task '
    || any_value(judged_criteria.task_id) || ': '
    || count(judged_criteria.verdict_id) || ' verdicts of ' || count(*)
        as note,
    count(*) - count(judged_criteria.verdict_id) as n_missing
from staging.judged_criteria
inner join staging.model_runs using (model_run_id)
where
    judged_criteria.benchmark = $benchmark
    and judged_criteria.dataset_revision = $revision
    and judged_criteria.status <> 'no_response'
group by response_id, model_run_id
having count(judged_criteria.verdict_id) > 0
order by 1
