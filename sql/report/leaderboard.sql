-- The leaderboard on each split and own hard selection, under each judge.
select
    judging,
    split,
    is_own_hard,
    if(is_latest, latest_rank, rank) as rank,
    entry as model,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    trials_ci_low,
    trials_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_wanted,
    coverage,
    coverage < $bar as is_below_bar,
    n_trials,
    met_share,
    mean_chars_alnum,
    mean_completion_tokens,
    cost_usd
from board_figures
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and cut = 'all'
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split) or is_own_hard)
order by judging <> $main, judging, is_own_hard, split, rank nulls last, model
