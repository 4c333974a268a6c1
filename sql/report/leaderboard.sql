-- The leaderboard on each split and own hard selection, under each judge; with what the answers cost, and what judging
-- them did. A cost that is not known makes a sum unknown, not smaller.
with costs as (
    select
        entries.entry,
        judgings.judging,
        split,
        is_own_hard,
        case
            when count(*) = count(answer_usd) then round(fsum(answer_usd), 9)
        end as answers_usd,
        case
            when not bool_or(is_judging_usd_unknown)
                then round(fsum(coalesce(judging_usd, 0)), 9)
        end as judging_usd
    from board_answers
    inner join $entries as entries (model, model_config_hash, vintage, entry)
        using (model, model_config_hash, vintage)
    inner join $judgings as judgings (
        judge, judge_config_hash, template_hash, grading, judge_trial, judging
    ) using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark and dataset_revision = $revision
    group by entries.entry, judgings.judging, split, is_own_hard
)

select
    judging,
    split,
    is_own_hard,
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
    trials_ci_low,
    trials_ci_high,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    coverage,
    coverage < $bar as is_below_bar,
    n_trials,
    met_share,
    mean_chars_alnum,
    mean_completion_tokens,
    costs.answers_usd,
    costs.judging_usd,
    cost_usd
from board_figures
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
left join costs using (entry, judging, split, is_own_hard)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and cut = 'all'
    and (
        if(
            is_own_hard,
            list_contains($own_boards::varchar[], split),
            len($splits::varchar[]) = 0
            or list_contains($splits::varchar[], split)
        )
    )
order by judging <> $main, judging, is_own_hard, split, rank nulls last, model
