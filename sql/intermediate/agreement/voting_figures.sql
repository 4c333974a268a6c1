-- One row: a set of voting graders, with a fingerprint of the values that their
-- effective votes are computed from.
--
-- built as: view
-- depends on: intermediate.voting_errors
select
    benchmark,
    dataset_revision,
    grader_set,
    list_unique(list_concat(list(grader_a), list(grader_b))) as n_voters,
    figure_key(['effective votes', benchmark, dataset_revision, grader_set]) as figure_id,
    bit_xor(
        hash(is_labelled, task_id, grader_a, grader_b, n, sum_a, sum_b, sum_aa, sum_bb, sum_ab)
    )::varchar as basis
from intermediate.voting_errors
group by all
