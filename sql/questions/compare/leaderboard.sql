-- The leaderboard on chosen splits, whole (breakdown `all`) or under each label
-- of a breakdown.
select
    split,
    label,
    if($vintage::varchar is null, latest_rank, rank) as rank,
    if($vintage::varchar is null, latest_rank_low, rank_low) as rank_low,
    if($vintage::varchar is null, latest_rank_high, rank_high) as rank_high,
    model,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    raw_mean_score,
    raw_ci_low,
    raw_ci_high,
    trials_mean,
    trials_ci_low,
    trials_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    n_tasks_annotated,
    is_complete,
    coverage,
    -- What no comparison needs is not wanted; the run itself compares what is
    -- with the bar.
    coverage < $bar and n_tasks_skipped is null as is_below_bar,
    n_tasks_skipped,
    unbiased_mean_score,
    is_judged,
    may_hide_failures,
    n_trials,
    if($vintage::varchar is null, n_tasks_latest_ranked, n_tasks_ranked)
        as n_tasks_ranked,
    met_share,
    met_ci_low,
    met_ci_high,
    mean_chars_alnum,
    mean_completion_tokens,
    cost_usd,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash,
    model_config_hash,
    vintage,
    score_name
from staging.leaderboard_rows
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and breakdown = $breakdown
    and is_own_hard = $is_hard
    and (
        len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split)
        or $is_hard
    )
    and (
        len($models::varchar[]) = 0
        or list_contains($models::varchar[], model)
    )
    and counts_as_judge(
        $judges, benchmark, dataset_revision, judge, judge_config_hash
    )
    and (
        $vintage::varchar = 'all' or vintage = $vintage
        or ($vintage::varchar is null and is_latest)
    )
order by
    split,
    breakdown,
    try_cast(label as integer),
    label,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash,
    if($vintage::varchar is null, null, vintage),
    rank nulls last,
    model,
    vintage
