-- What did each model cost on each split, and what does a point of the score
-- cost?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select split, model, vintage, judge,
    round(mean_score, 3) as score,
    round(cost_usd, 2) as cost_usd,
    round(cost_usd / nullif(100 * mean_score, 0), 4) as usd_per_point,
    round(mean_completion_tokens) as mean_completion_tokens
from leaderboard
natural join judge
where is_primary and is_latest
order by split, cost_usd nulls last, model
