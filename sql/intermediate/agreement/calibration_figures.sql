-- One row: a judge with probabilities and another grader under a label, with a
-- fingerprint of the inputs of their calibration.
--
-- built as: view
-- depends on: intermediate.calibration_bins
select
    benchmark,
    dataset_revision,
    judge,
    reference,
    breakdown,
    label,
    sum(n)::bigint as n,
    count(distinct task_id) as n_tasks,
    exact_sum(sum_p) / sum(n) as mean_probability,
    exact_sum(sum_y) / sum(n) as met_share,
    figure_key(['calibration', benchmark, dataset_revision, judge, reference, breakdown, label])
        as figure_id,
    bit_xor(hash(task_id, bin, n, sum_p, sum_y, sum_pp, sum_py, sum_yy))::varchar as basis
from intermediate.calibration_bins
group by all
