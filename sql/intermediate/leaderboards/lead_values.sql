-- One row: a task with a complete trial of a ranked model and of the first one of its
-- board, with the score of each.
--
-- built as: view
-- depends on: intermediate.figure_values, intermediate.lead_figures
select distinct
    lead_figures.figure_id,
    leader.task_id,
    leader.value as leader_value,
    follower.value
from intermediate.lead_figures
inner join intermediate.figure_values as leader on lead_figures.leader_figure_id = leader.figure_id
inner join intermediate.figure_values as follower
    on lead_figures.other_figure_id = follower.figure_id and leader.task_id = follower.task_id
