-- In which rubric categories is each model strong or weak (min-normalised,
-- figure 6)?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select split,
    label as category,
    judge, vintage, model,
    round(mean_score, 3) as min_normalized,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    n_tasks,
    latest_rank as rank
from breakdown_leaderboard
natural join judge
where breakdown = 'category'
    and score_name = 'min_normalized'
    and not is_own_hard
    and is_latest
order by split, category, rank nulls last, model
