with counted as (
    select
        benchmark,
        dataset_revision,
        grader_a,
        grader_b,
        kind_a,
        kind_b,
        is_member,
        cut,
        label,
        sum(n)::bigint as n,
        count(distinct task_id) as n_tasks,
        sum(n * value_a) / sum(n) as met_share_a,
        sum(n * value_b) / sum(n) as met_share_b,
        md5(
            concat_ws(
                chr(31), benchmark, dataset_revision, grader_a, grader_b, cut, label
            )
        ) as figure_id,
        bit_xor(hash(task_id, value_a, value_b, n))::varchar as basis
    from agreement_counts
    group by all
)

select
    counted.*,
    measures.* exclude (figure_id, basis, method, created_at)
from counted
left join agreement_measures as measures
    on
        counted.figure_id = measures.figure_id
        -- Measures belong to the decisions that they were computed from.
        and counted.basis = measures.basis
