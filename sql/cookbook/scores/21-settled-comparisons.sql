-- Which comparisons are settled, after how many tasks, and what did they find?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select benchmark, judge, model, vintage, compared_model, compared_vintage, decision,
    round(mean_difference, 3) as difference,
    round(sequence_low, 3) as low,
    round(sequence_high, 3) as high,
    round(unbiased_difference, 3) as unbiased,
    n_tasks_evaluated, n_tasks_planned
from stopped_comparisons
natural join judge
where is_decided
order by benchmark, looked_at desc, model, compared_model
