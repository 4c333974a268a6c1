-- built as: view
-- depends on: staging.reliability_counts, reliability_measures
with counted as (
    select benchmark, dataset_revision, grader_set, breakdown, label,
        max(n_graders) as n_graders,
        sum(n)::bigint as n,
        count(distinct task_id) as n_tasks,
        sum(n_unanimous) / sum(n) as unanimous_share,
        md5(
            concat_ws(chr(31), benchmark, dataset_revision, grader_set, breakdown, label)
        ) as figure_id,
        bit_xor(
            hash(
                task_id,
                n,
                -- Sums of thirds and the like, which depend on their order in
                -- the last digits.
                round(unmet_unmet, 6),
                round(unmet_partial, 6),
                round(unmet_met, 6),
                round(partial_partial, 6),
                round(partial_met, 6),
                round(met_met, 6)
            )
        )::varchar as basis
    from staging.reliability_counts
    group by all
)

select counted.*, measures.* exclude (figure_id, basis, method, created_at)
from counted
left join reliability_measures as measures
    on counted.figure_id = measures.figure_id and counted.basis = measures.basis
