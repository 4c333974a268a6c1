-- Which critical mistakes were made, by which model, and what did the judge
-- say?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select model, vintage, judge, task_id, trial, weight, title, explanation
from verdict_details
natural join judge
inner join (
    select benchmark, arg_min(severity, min_weight) as severity
    from severities
    where min_weight < 0
    group by benchmark
) as gravest using (benchmark, severity)
where status = 'met' and is_latest
order by weight, model, task_id, trial
limit 50
