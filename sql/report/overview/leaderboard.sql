-- The leaderboard on each split and own hard selection, under each judge; with
-- what the answers cost, and what judging them did. A cost that is not known
-- makes a sum unknown, not smaller.
-- begins with: entries, judgings, shown_scores, shown_splits
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
    from staging.judged_answers
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark and dataset_revision = $revision
    group by entries.entry, judgings.judging, split, is_own_hard
)

select
    judging,
    split,
    is_own_hard,
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
from shown_scores
left join costs using (entry, judging, split, is_own_hard)
where
    score_name = $score
    and breakdown = 'all'
    and if(
        is_own_hard,
        list_contains($own_hard_splits::varchar[], split),
        split in (select split from shown_splits)
    )
order by
    judging <> $main,
    judging,
    is_own_hard,
    split,
    displayed_rank nulls last,
    entry
