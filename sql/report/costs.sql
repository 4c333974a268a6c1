-- What an answer costs and what judging it costs, in US dollars, beside the
-- score: of each model on each split, under each judge. Means are over the
-- answers whose cost is known; a sum is NULL as soon as one cost is unknown.
-- Answers that nobody has judged have no judge and no score.
-- begins with: entries, judgings, shown_answers, shown_scores, shown_splits
with judged as (
    select
        judgings.judging,
        split,
        entries.entry as model,
        answer_usd,
        if(is_judging_usd_unknown, null, judging_usd) as judging_usd
    from staging.judged_answers
    inner join shown_splits using (split)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and not is_own_hard
),

unjudged as (
    select
        task_set_members.split,
        shown_answers.entry as model,
        shown_answers.cost_usd as answer_usd
    from shown_answers
    inner join staging.task_set_members
        using (benchmark, dataset_revision, task_id)
    inner join shown_splits using (split)
    anti join judged on shown_answers.entry = judged.model
    where not task_set_members.is_own_hard
),

costs as (
    select
        judging,
        split,
        model,
        round(favg(answer_usd), 12) as answer_usd,
        round(favg(judging_usd), 12) as judging_usd,
        case
            when count(*) = count(answer_usd) then round(fsum(answer_usd), 9)
        end as all_answers_usd,
        count(*) as n_answers,
        count(*) - count(answer_usd) as n_unpriced_answers
    from (from judged union all by name from unjudged)
    group by all
),

scored as (
    select
        judging,
        split,
        entry as model,
        mean_score,
        ci_low,
        ci_high,
        coverage
    from shown_scores
    where
        score_name = $score
        and breakdown = 'all'
        and is_judged
        and not is_own_hard
),

final as (
    select
        judging,
        split,
        model,
        scored.mean_score,
        scored.ci_low,
        scored.ci_high,
        scored.coverage,
        costs.answer_usd,
        costs.judging_usd,
        costs.answer_usd + costs.judging_usd as task_usd,
        costs.all_answers_usd,
        costs.n_answers,
        costs.n_unpriced_answers
    from scored
    left join costs using (judging, split, model)
    union all by name
    select
        judging,
        split,
        model,
        answer_usd,
        all_answers_usd,
        n_answers,
        n_unpriced_answers
    from costs
    where judging is null
)

select
    judging,
    split,
    shown_splits.is_hard,
    final.* exclude (judging, split)
from final
inner join shown_splits using (split)
order by
    coalesce(judging <> $main, true),
    judging nulls last,
    is_hard,
    split,
    answer_usd nulls last,
    model
