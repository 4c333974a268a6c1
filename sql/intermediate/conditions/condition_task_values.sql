-- One row: a task in the comparison of a condition with its baseline, with its
-- score under each.
--
-- built as: view
-- depends on: intermediate.condition_figures, intermediate.condition_values,
--     intermediate.task_set_members
select distinct
    condition_figures.figure_id,
    members.task_id,
    condition_values.baseline_value,
    condition_values.value
from intermediate.condition_figures
inner join intermediate.condition_values using (comparison_id)
inner join intermediate.task_set_members as members using (task_set_id, task_id)
