-- One row: the mean of one trial over the tasks that are complete in it, before
-- any clipping.
--
-- built as: table
-- depends on: intermediate.breakdown_values, intermediate.task_set_members
with trial_values as (
    select task_set_members.task_set_id, breakdown_values.model_run_id, breakdown_values.breakdown,
        breakdown_values.label, breakdown_values.score_name,
        unnest(breakdown_values.complete_trials) as trial,
        unnest(breakdown_values.trial_values) as value
    from intermediate.breakdown_values
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
)

select task_set_id, model_run_id, breakdown, label, score_name, trial,
    count(*) as n_tasks,
    exact_avg(value) as trial_mean
from trial_values
group by all
