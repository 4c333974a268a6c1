-- In which rubric categories is each model strong or weak (min-normalised,
-- figure 6)?
select split,
    label as category,
    model,
    round(mean_score, 3) as min_normalized,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    n_tasks, rank
from breakdown_leaderboard
where breakdown = 'category' and score_name = 'min_normalized' and not is_own_hard
order by split, category, rank nulls last, model
