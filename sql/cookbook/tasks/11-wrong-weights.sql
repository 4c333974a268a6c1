-- Which criteria go against the rest of their task, so that weight or sign may
-- be wrong?
-- Of a criterion's vintages, the one with the most models counts.
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select judge, vintage, task_id, category, weight,
    round(met_share, 3) as met_share,
    n_models,
    round(rest_correlation, 3) as rest_correlation,
    round(rest_correlation_high, 3) as at_most,
    title
from criterion_statistics
natural join judge
qualify rest_correlation < 0
    and row_number() over (
        partition by benchmark, dataset_revision, task_id, criterion_id
        order by n_models desc, vintage desc
    ) = 1
order by rest_correlation_high nulls last, rest_correlation, task_id
limit 50
