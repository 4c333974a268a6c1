-- Which models lead, with interval and coverage?
select benchmark, split, judge, judge_trial, vintage, rank,
    rank_low || ' to ' || rank_high as possible_ranks,
    model,
    round(mean_score, 3) as score,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    round(raw_mean_score, 3) as before_clipping,
    n_tasks, n_tasks_full, n_tasks_wanted,
    round(coverage, 3) as coverage
from leaderboard
where is_primary
order by benchmark, split, judge, judge_trial, vintage, rank nulls last, score desc, model
