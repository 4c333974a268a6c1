-- One row: a row of the leaderboard on a split that is shown, or on an own hard
-- selection.
-- begins with: shown_scores, shown_splits
select judging, split, is_own_hard,
    displayed_rank as rank,
    displayed_rank_low as rank_low,
    displayed_rank_high as rank_high,
    entry as model,
    mean_score, ci_low, ci_high, is_small,
    hidden_mean_score as raw_mean_score,
    hidden_ci_low as raw_ci_low,
    hidden_ci_high as raw_ci_high,
    trials_ci_low, trials_ci_high, mean_lower, mean_upper, n_tasks, n_tasks_full, n_tasks_wanted,
    displayed_n_tasks_ranked as n_tasks_ranked,
    coverage,
    coverage < $bar and n_tasks_skipped is null as is_below_bar,
    n_tasks_skipped, unbiased_mean_score, n_trials, met_share, mean_chars_alnum,
    mean_completion_tokens, cost_usd
from shown_scores
where score_name = $score
    and breakdown = 'all'
    and if(
        is_own_hard,
        list_contains($own_hard_splits::varchar[], split),
        split in (select split from shown_splits)
    )
