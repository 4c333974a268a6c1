-- What an answer costs and what judging it costs, in US dollars, beside the
-- score: of each model on each split, under each judge. Means are over the
-- answers whose cost is known; a sum is NULL as soon as one cost is unknown.
-- Answers that nobody has judged have no judge and no score.
-- begins with: answer_costs, shown_scores, shown_splits
with scored as (
    select judging, split, entry as model, mean_score, ci_low, ci_high, coverage
    from shown_scores
    where score_name = $score and breakdown = 'all' and is_judged and not is_own_hard
),

final as (
    select judging, split, model, scored.mean_score, scored.ci_low, scored.ci_high, scored.coverage,
        costs.answer_usd, costs.judging_usd,
        costs.answer_usd + costs.judging_usd as task_usd,
        costs.all_answers_usd, costs.n_answers, costs.n_unpriced_answers
    from scored
    left join answer_costs as costs using (judging, split, model)
    union all by name
    select judging, split, model, answer_usd, all_answers_usd, n_answers, n_unpriced_answers
    from answer_costs
    where judging is null
)

select judging, split, shown_splits.is_hard, final.* exclude (judging, split)
from final
inner join shown_splits using (split)
order by coalesce(judging <> $main, true), judging nulls last, is_hard, split,
    answer_usd nulls last, model
