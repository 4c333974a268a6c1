-- One row: the change of a judge's verdicts from one arrangement of criteria in calls to
-- another, under a label.
--
-- built as: view
-- depends on: intermediate.measured, intermediate.neighbour_figures
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
    n,
    n_tasks,
    before,
    after,
    measured.change,
    measured.change_ci_low,
    measured.change_ci_high,
    measured.change_is_small as is_small
from intermediate.neighbour_figures
left join intermediate.measured using (figure_id, basis)
