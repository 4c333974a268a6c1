-- One row: two graders under one label of a breakdown, with a fingerprint of
-- their decisions.
--
-- built as: view
-- depends on: intermediate.agreement_counts
select
    benchmark,
    dataset_revision,
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    is_member,
    breakdown,
    label,
    sum(n)::bigint as n,
    count(distinct task_id) as n_tasks,
    sum(n * value_a) / sum(n) as met_share_a,
    sum(n * value_b) / sum(n) as met_share_b,
    figure_key([benchmark, dataset_revision, grader_a, grader_b, breakdown, label]) as figure_id,
    bit_xor(hash(task_id, value_a, value_b, n))::varchar as basis
from intermediate.agreement_counts
group by all
