-- One row: a task's value in a figure of a leaderboard, and its place among the
-- tasks of the task set.
--
-- built as: view
-- depends on: intermediate.breakdown_values, intermediate.mean_scores,
--     intermediate.task_set_members
with places as (
    select task_set_id, benchmark, dataset_revision, task_id,
        row_number() over (partition by task_set_id order by task_id) - 1 as task,
        count(*) over (partition by task_set_id) as n_tasks_of_set
    from intermediate.task_set_members
)

select mean_scores.figure_id, places.task, places.n_tasks_of_set, breakdown_values.value,
    breakdown_values.n_met, breakdown_values.n_judged
from intermediate.breakdown_values
inner join places using (benchmark, dataset_revision, task_id)
inner join intermediate.mean_scores using (task_set_id, model_run_id, breakdown, label, score_name)
where breakdown_values.value is not null
