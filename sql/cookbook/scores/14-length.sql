-- Do longer responses score higher (figure 7)?
-- The row over the models is that of the vintage with the most models.
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select benchmark, dataset_revision, split,
    coalesce(model, '(over the models)') as model,
    vintage, judge, measure,
    round(rank_correlation, 3) as rank_correlation,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    n
from length_correlations
natural join judge
inner join score_definitions using (benchmark, score_name)
where is_primary and not is_own_hard and coalesce(is_latest, true)
qualify model is not null
    or row_number() over (
        partition by benchmark, dataset_revision, split, measure, level
        order by n desc, vintage desc
    ) = 1
order by benchmark, dataset_revision, split, level, measure, model
