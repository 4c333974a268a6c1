-- Every usable response of a revision that a judge has begun, with how many of
-- its criteria have no verdict. People who label are no judges.
select
    response_id || '/' || model_run_id as key,
    count(*) - count(judged_criteria.verdict_id) as n_missing
from staging.judged_criteria
inner join staging.model_runs using (model_run_id)
anti join staging.people_who_label as people
    on model_runs.benchmark = people.benchmark
        and model_runs.dataset_revision = people.dataset_revision
        and model_runs.judge = people.judge
        and model_runs.judge_config_hash = people.judge_config_hash
where judged_criteria.benchmark = $benchmark
    and judged_criteria.dataset_revision = $revision
    and judged_criteria.status <> 'no_response'
group by response_id, model_run_id
having count(judged_criteria.verdict_id) > 0
order by 1
