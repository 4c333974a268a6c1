-- One row: two arrangements of a judge's calls under a label, with a fingerprint
-- of the inputs of their difference.
--
-- built as: view
-- depends on: intermediate.neighbour_changes
select
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    arrangement,
    compared_with,
    measure_of,
    breakdown,
    label,
    sum(n)::bigint as n,
    count(distinct task_id) as n_tasks,
    sum(sum_before) / sum(n) as before,
    sum(sum_after) / sum(n) as after,
    figure_key([
        'neighbours', benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial::varchar, arrangement, compared_with, measure_of, breakdown, label
    ]) as figure_id,
    bit_xor(hash(task_id, n, sum_before, sum_after, sum_change))::varchar as basis
from intermediate.neighbour_changes
group by all
