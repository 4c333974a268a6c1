-- One row: a share of agreement, over all criteria or under a label, with a
-- fingerprint of the values that it is computed from.
--
-- built as: view
-- depends on: intermediate.review_values
select
    benchmark,
    dataset_revision,
    population_id,
    breakdown,
    label,
    any_value(n_population) as n_population,
    round(exact_sum(weight_agreed) / exact_sum(sample_weights), 12) as agreeing_share,
    round(exact_sum(n_agreed) / sum(n_criteria), 12) as unweighted_share,
    sum(n_criteria)::bigint as n_criteria,
    sum(n_reviews)::bigint as n_reviews,
    count(*) as n_tasks,
    figure_key(['reviews', benchmark, dataset_revision, population_id, breakdown, label])
        as figure_id,
    bit_xor(hash(task_id, weight_agreed, sample_weights))::varchar as basis
from intermediate.review_values
group by all
