-- One row: a task's value in a figure of a leaderboard, and its index among the
-- tasks of the task set.
--
-- built as: view
-- depends on: intermediate.breakdown_values, intermediate.mean_scores,
--     intermediate.task_set_members
select
    mean_scores.figure_id,
    mean_scores.mean_floor,
    members.task,
    members.n_tasks_of_set,
    breakdown_values.model_run_id,
    task_id,
    label_key,
    value,
    n_trials_complete,
    n_met,
    breakdown_values.n_judged,
    offset_points,
    denominator,
    complete_trials,
    trial_values,
    breakdown_values.breakdown,
    breakdown_values.label
from intermediate.breakdown_values
inner join intermediate.task_set_members as members using (benchmark, dataset_revision, task_id)
inner join intermediate.mean_scores using (task_set_id, series_id)
where breakdown_values.value is not null
