-- One row: a task's value in a figure without an interval, on one task set;
-- task and figure by their places.
with figures as (
    select
        *,
        row_number() over (order by breakdown, label, figure_id) - 1 as figure
    from stale_figures
    where task_set_id = $task_set
),

places as (
    select
        benchmark,
        dataset_revision,
        task_id,
        row_number() over (order by task_id) - 1 as task
    from staging.task_set_members
    where task_set_id = $task_set
)

select
    figures.figure,
    places.task,
    breakdown_values.value,
    breakdown_values.n_met,
    breakdown_values.n_judged
from staging.breakdown_values
inner join places using (benchmark, dataset_revision, task_id)
inner join figures using (model_run_id, breakdown, label, score_name)
where breakdown_values.value is not null
order by figures.figure
