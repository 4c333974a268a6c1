-- The leaderboard on each split and own hard selection, under each judge; with
-- what the answers cost, and what judging them did. A cost that is not known
-- makes a sum unknown, not smaller.
-- begins with: entries, judgings, shown_leaderboard
with costs as (
    select
        entries.entry as model,
        judgings.judging, split, is_own_hard,
        case
            when count(*) = count(answer_usd) then round(exact_sum(answer_usd), 9)
        end as answers_usd,
        case
            when not bool_or(is_judging_usd_unknown)
                then round(exact_sum(coalesce(judging_usd, 0)), 9)
        end as judging_usd
    from staging.judged_answers
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark and dataset_revision = $revision
    group by entries.entry, judgings.judging, split, is_own_hard
)

select
    shown_leaderboard.* exclude (cost_usd),
    costs.answers_usd, costs.judging_usd, shown_leaderboard.cost_usd
from shown_leaderboard
left join costs using (model, judging, split, is_own_hard)
order by judging <> $main, judging, is_own_hard, split, rank nulls last, model
