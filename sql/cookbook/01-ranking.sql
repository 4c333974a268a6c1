-- Which models lead, with interval and coverage?
select
    benchmark,
    split,
    judge,
    judge_trial,
    vintage,
    rank,
    model,
    round(mean_score, 3) as score,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    n_tasks,
    n_tasks_wanted,
    round(coverage, 3) as coverage
from leaderboard
where is_primary
order by benchmark, split, judge, judge_trial, vintage, rank nulls last, score desc
