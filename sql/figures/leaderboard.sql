-- The leaderboard, whole or under each label of a breakdown, on each split and
-- own hard selection, under each judge, with the cost of the responses and of
-- judging them. One unknown cost makes a sum unknown.
-- Without a vintage the current ones (`is_latest`) are ranked together; labels with the best
-- means come first. The criteria under a label may all have negative weights,
-- so they get a score that is defined for those too.
with ranked as (
    select leaderboard_rows.*, is_hard, entry, judge_config,
        $vintage is null as is_of_latest
    from intermediate.leaderboard_rows
    inner join $shown_sets using (split, is_own_hard)
    natural join $entries
    natural join $shown_judge_configs
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = $breakdown
        and score_name = if($of_criteria, $label_score, $score)
        and (is_latest or $vintage is not null)
),

costs as (
    select model_run_id, split, is_own_hard,
        case
            when count(*) = count(response_usd) then round(exact_sum(response_usd), 9)
        end as responses_usd,
        case
            when not bool_or(is_verdicts_usd_unknown)
                then round(exact_sum(coalesce(verdicts_usd, 0)), 9)
        end as verdicts_usd
    from intermediate.judged_responses
    semi join ranked using (model_run_id)
    where $breakdown = 'all'
    group by all
),

-- The newest vintage of each model, which is not the current one if it covers too little.
newest as (
    select split, is_own_hard, model, model_config_hash, judge, judge_config_hash, template_hash,
        grading, judge_trial,
        count(*) as n_vintages,
        arg_max(vintage, (first_response_at, vintage)) as newest_vintage,
        arg_max(coverage, (first_response_at, vintage)) as newest_coverage
    from intermediate.leaderboard_rows
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = 'all'
        and score_name = $score
        and $vintage is null
    group by all
),

further_trials as (
    select model_run_id,
        list_filter(trials, lambda trial: not list_contains(counted_trials, trial))
            as uncounted_trials
    from intermediate.model_runs
),

-- Of judges that decide several criteria in one call.
groups as (
    select judge, judge_config_hash, template_hash, grading, judge_configs.judge_trial,
        n_in_call as criteria_per_call,
        effects.change as neighbour_effect,
        effects.change_ci_low as neighbour_effect_ci_low,
        effects.change_ci_high as neighbour_effect_ci_high
    from intermediate.judge_configs
    left join (
        from neighbour_effects
        where benchmark = $benchmark
            and dataset_revision = $dataset_revision
            and arrangement = 'grouped'
            and compared_with = 'alone'
            and measure_of = 'met'
            and breakdown = 'all'
    ) as effects using (judge, judge_config_hash, template_hash, grading)
    where n_in_call > 1
)

select
    judge_config,
    split,
    is_own_hard,
    is_hard,
    case
        when $breakdown <> 'subset' or label <> 'full' then nullif(label, '')
        when list_contains($hard_splits, split) then 'official hard'
        else label
    end as label,
    if(is_of_latest, latest_rank, rank) as rank,
    if(is_of_latest, latest_rank_low, rank_low) as rank_low,
    if(is_of_latest, latest_rank_high, rank_high) as rank_high,
    if(is_of_latest, latest_may_be_first, may_be_first) as may_be_first,
    entry as model,
    mean_score,
    ci_low,
    ci_high,
    is_small,
    raw_mean_score,
    raw_ci_low,
    raw_ci_high,
    -- The values before clipping, if clipping changes any.
    if(raw_ci_low < ci_low or raw_mean_score < mean_score, raw_mean_score, null)
        as hidden_mean_score,
    if(raw_ci_low < ci_low, raw_ci_low, null) as hidden_ci_low,
    if(raw_ci_low < ci_low, raw_ci_high, null) as hidden_ci_high,
    trials_mean,
    trials_ci_low,
    trials_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    -- A model that this judge has not judged has no row in further_trials, and so no count.
    case when uncounted_trials is not null then coalesce(n_tasks_annotated, 0) end
        as n_tasks_annotated,
    is_complete,
    if(is_of_latest, n_tasks_latest_ranked, n_tasks_ranked) as n_tasks_ranked,
    coverage,
    coverage < $bar and n_tasks_skipped is null as is_below_bar,
    n_tasks_skipped,
    unbiased_mean_score,
    is_judged,
    may_hide_failures,
    n_trials,
    met_share,
    met_ci_low,
    met_ci_high,
    mean_chars_alnum,
    mean_completion_tokens,
    responses_usd,
    verdicts_usd,
    cost_usd,
    score_name,
    ranked.model as model_label,
    model_config_hash,
    vintage,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash,
    criteria_per_call,
    neighbour_effect,
    neighbour_effect_ci_low,
    neighbour_effect_ci_high,
    if(newest_vintage <> vintage, newest_vintage, null) as newer_vintage,
    if(newest_vintage <> vintage, newest_coverage, null) as newer_coverage,
    coalesce(n_vintages, 1) as n_vintages,
    nullif(uncounted_trials, []) as uncounted_trials
from ranked
left join groups using (judge, judge_config_hash, template_hash, grading, judge_trial)
left join costs using (model_run_id, split, is_own_hard)
left join newest
    using (
        split, is_own_hard, model, model_config_hash, judge, judge_config_hash, template_hash,
        grading, judge_trial
    )
left join further_trials using (model_run_id)
order by judge_config <> $main, judge_config, is_own_hard, is_hard, split,
    try_cast(label as integer) nulls last,
    -- Values that differ only by rounding are a tie.
    round(avg(mean_score) over (partition by judge_config, split, ranked.label), 9) desc nulls last,
    label, rank nulls last, model;
