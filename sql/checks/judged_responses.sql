-- Every usable response of a revision that a judge has begun, with how many of
-- its criteria have no verdict.
select
    response_id || '/' || model_run_id as key,
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
