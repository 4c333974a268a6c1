-- One row: a bin of a judge's probabilities beside another grader's decisions: a point of the
-- reliability diagram.
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
    bin,
    sum(n)::bigint as n,
    exact_sum(sum_p) / sum(n) as mean_probability,
    exact_sum(sum_y) / sum(n) as met_share
from intermediate.calibration_bins
group by all
