-- One row: two reviewers, or all reviewers together, in one check, with a
-- fingerprint of their decisions.
--
-- built as: view
-- depends on: intermediate.reviewer_counts, intermediate.reviewer_coincidences
with pairs as (
    select benchmark, dataset_revision, review_check, reviewer_a, reviewer_b,
        sum(n)::bigint as n,
        count(distinct task_id) as n_tasks,
        sum(n) filter (value_a = value_b) / sum(n) as agreement,
        sum(n * value_a) / sum(n) as pass_share_a,
        sum(n * value_b) / sum(n) as pass_share_b,
        bit_xor(hash(task_id, value_a, value_b, n))::varchar as basis
    from intermediate.reviewer_counts
    group by all
),

sets as (
    select benchmark, dataset_revision, review_check,
        'all reviewers' as reviewer_a,
        sum(n_criteria)::bigint as n,
        count(*) as n_tasks,
        round(
            exact_sum(fail_fail + pass_pass) / exact_sum(fail_fail + 2 * fail_pass + pass_pass), 12
        ) as agreement,
        bit_xor(hash(task_id, fail_fail, fail_pass, pass_pass))::varchar as basis
    from intermediate.reviewer_coincidences
    group by all
)

select
    benchmark,
    dataset_revision,
    review_check,
    reviewer_a,
    reviewer_b,
    n,
    n_tasks,
    agreement,
    pass_share_a,
    pass_share_b,
    basis,
    figure_key([
        'reviewers', benchmark, dataset_revision, review_check, reviewer_a, coalesce(reviewer_b, '')
    ]) as figure_id
from (from pairs union all by name from sets)
