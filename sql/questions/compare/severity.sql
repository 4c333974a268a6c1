-- Critical criteria met and critical mistakes made, the fewest mistakes first.
select
    split,
    model,
    critical_met_share,
    critical_met_ci_low,
    critical_met_ci_high,
    is_critical_small,
    n_critical,
    n_tasks_critical,
    critical_coverage,
    mistake_share,
    mistake_ci_low,
    mistake_ci_high,
    is_mistake_small,
    n_mistakes_possible,
    n_tasks_mistakes,
    mistake_coverage,
    critical_coverage < $bar as is_critical_below_bar,
    mistake_coverage < $bar as is_mistake_below_bar,
    least(critical_coverage, mistake_coverage) < $bar as is_below_bar,
    responses_with_mistake_share,
    n_responses_at_risk,
    n_trials,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash,
    model_config_hash,
    vintage
from severity_leaderboard
where
    benchmark = $benchmark
    and dataset_revision = $revision
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
    judge,
    judge_trial,
    grading,
    if($vintage::varchar is null, null, vintage),
    mistake_share,
    model,
    vintage
