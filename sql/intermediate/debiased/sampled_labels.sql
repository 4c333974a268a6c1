-- One row: a verdict that a sheet sampled and people labelled, with the number
-- of verdicts that it represents.
--
-- The label is the mean of people's decisions. In a sheet it represents
-- 1 / probability of being sampled and filled in; a verdict with a label before
-- the sheet represents itself. With several sheets it is the mean over those
-- that could have sampled it, weighted by the labelled share of their
-- population. Each sheet is unbiased given the labels before it, so the mean is too.
--
-- built as: table
-- needs: intermediate.imported_decisions
-- depends on: intermediate.covered_responses, intermediate.imported_decisions, criteria,
--     label_draws
with labelled as (
    select
        * exclude (judge, value, is_label),
        round(avg(value), 12) as value,
        list_sort(list(distinct judge)) as people
    from intermediate.imported_decisions
    where is_label
    group by all
),

weighed as (
    select labelled.*, covered.density,
        case
            when label_draws.is_known then 1
            when label_draws.probability is null then 0
            else 1 / (label_draws.probability * covered.labelled_share)
        end as n_represented
    from labelled
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    inner join intermediate.covered_responses as covered using (response_id, steps)
    left join label_draws using (sheet_id, response_id, criterion_id, criterion_hash)
    where criterion_hash = criteria.content_hash
        and (
            covered.covered_breakdown = 'all'
            or coalesce(criteria.category, '(none)') = covered.covered_label
        )
)

select
    response_id,
    criterion_id,
    criterion_hash,
    steps,
    value,
    people,
    round(exact_sum(density * n_represented) / exact_sum(density), 12) as factor
from weighed
group by all
having factor > 0
