-- One row: a task's score in a model run, under one of the labels of the task or
-- its criteria.
--
-- built as: view
-- depends on: intermediate.task_breakdowns, intermediate.task_values
select
    model_run_id,
    ranking_id,
    benchmark,
    dataset_revision,
    task_id,
    label_key,
    score_name,
    value,
    value_lower,
    value_upper,
    n_trials_complete,
    is_complete,
    n_trials,
    n_decided,
    n_met,
    n_judged,
    lowest,
    highest,
    offset_points,
    denominator,
    complete_trials,
    trial_values,
    task_breakdowns.breakdown,
    task_breakdowns.label,
    hash(model_run_id, task_breakdowns.breakdown, task_breakdowns.label, score_name) as series_id
from intermediate.task_values
inner join intermediate.task_breakdowns using (benchmark, dataset_revision, task_id)
where task_values.breakdown = 'all'
union all by name
select *
from intermediate.task_values
where breakdown <> 'all'
