-- How was the response with the lowest score judged?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

worst as (
    select response_id
    from scores
    natural join judge
    where is_primary and is_complete and is_latest
    order by mean_score, response_id
    limit 1
)

select model, vintage, judge, task_id, trial, weight, category, status, title, explanation
from verdict_details
natural join judge
semi join worst using (response_id)
order by abs(weight) * (case when weight > 0 then 1 - value else value end) desc, criterion_id
