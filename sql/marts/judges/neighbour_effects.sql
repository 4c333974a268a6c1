-- One row: the change of a judge's verdicts from one arrangement of criteria in calls to
-- another, under a label.
--
-- built as: view
-- depends on: intermediate.measured, intermediate.neighbour_figures
select figures.* exclude (figure_id, basis),
    measured.change, measured.change_ci_low, measured.change_ci_high,
    measured.change_is_small as is_small
from intermediate.neighbour_figures as figures
left join intermediate.measured using (figure_id, basis)
