-- The leaderboard on the own hard selection of each field, under each judge.
-- begins with: shown_leaderboard
select
    * exclude (
        is_own_hard, trials_ci_low, trials_ci_high, is_below_bar, mean_chars_alnum,
        mean_completion_tokens, cost_usd, n_tasks_skipped, unbiased_mean_score
    )
from shown_leaderboard
where is_own_hard
order by judging <> $main, judging, split, rank nulls last, model
