-- What did each model cost on each split, and what does a point of the score
-- cost?
select split, model, judge,
    round(mean_score, 3) as score,
    round(cost_usd, 2) as cost_usd,
    round(cost_usd / nullif(100 * mean_score, 0), 4) as usd_per_point,
    round(mean_completion_tokens) as mean_completion_tokens
from leaderboard
where is_primary
order by split, judge, cost_usd nulls last, model
