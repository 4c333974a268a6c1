-- The leaderboard on the own hard selection of each field, under each judge.
-- begins with: shown_scores
select
    judging,
    split,
    displayed_rank as rank,
    displayed_rank_low as rank_low,
    displayed_rank_high as rank_high,
    entry as model,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    hidden_mean_score as raw_mean_score,
    hidden_ci_low as raw_ci_low,
    hidden_ci_high as raw_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    coverage,
    n_trials,
    met_share
from shown_scores
where
    score_name = $score
    and breakdown = 'all'
    and is_own_hard
    and list_contains($own_hard_splits::varchar[], split)
order by judging <> $main, judging, split, displayed_rank nulls last, entry
