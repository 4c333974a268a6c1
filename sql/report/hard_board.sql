-- The leaderboard on the own hard selection of each field, under each judge.
select
    judging,
    split,
    if(is_latest, latest_rank, rank) as rank,
    if(is_latest, latest_rank_low, rank_low) as rank_low,
    if(is_latest, latest_rank_high, rank_high) as rank_high,
    entry as model,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    -- Only where clipping hides it.
    if(raw_ci_low < ci_low or raw_mean_score < mean_score, raw_mean_score, null)
        as raw_mean_score,
    if(raw_ci_low < ci_low, raw_ci_low, null) as raw_ci_low,
    if(raw_ci_low < ci_low, raw_ci_high, null) as raw_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    coverage,
    n_trials,
    met_share
from hard_leaderboard
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and list_contains($own_boards::varchar[], split)
order by judging <> $main, judging, split, rank nulls last, model
