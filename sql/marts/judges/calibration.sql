-- One row: the calibration of a judge's probabilities against another grader, under a label.
--
-- built as: view
-- depends on: intermediate.calibration_figures, intermediate.measured
select
    benchmark,
    dataset_revision,
    judge,
    reference,
    breakdown,
    label,
    n,
    n_tasks,
    mean_probability,
    met_share,
    measured.brier,
    measured.brier_ci_low,
    measured.brier_ci_high,
    measured.reliability,
    measured.resolution,
    measured.uncertainty,
    measured.plain_error,
    measured.calibration_error,
    measured.calibration_error_ci_low,
    measured.calibration_error_ci_high,
    measured.brier_is_small as is_small
from intermediate.calibration_figures
left join intermediate.measured using (figure_id, basis)
