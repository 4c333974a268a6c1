-- built as: view
-- depends on: intermediate.model_run_names, intermediate.task_values
select names.*,
    task_values.* exclude (
        model_run_id, benchmark, dataset_revision, breakdown, label, label_key, series_id, n_met,
        n_judged, lowest, highest, offset_points, denominator, complete_trials, trial_values
    )
from intermediate.task_values
inner join intermediate.model_run_names as names using (model_run_id)
where task_values.breakdown = 'all'
