-- built as: view
-- depends on: intermediate.all_scores, intermediate.current_tasks, intermediate.model_runs,
--     intermediate.task_values, tasks
select
    task_values.model_run_id,
    task_values.ranking_id,
    benchmark,
    dataset_revision,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    model_runs.vintage,
    model_runs.model,
    model_runs.model_config_hash,
    task_id,
    tasks.field,
    tasks.topic,
    tasks.splits,
    score_name,
    all_scores.is_primary,
    coalesce(current_tasks.latest_splits, []) as latest_splits,
    coalesce(current_tasks.is_latest, false) as is_latest,
    coalesce(current_tasks.is_current, false) as is_current,
    task_values.value as mean_score,
    task_values.value_lower as mean_lower,
    task_values.value_upper as mean_upper,
    task_values.n_trials_complete,
    task_values.is_complete,
    task_values.n_trials,
    task_values.n_decided,
    task_values.value,
    task_values.value_lower,
    task_values.value_upper
from intermediate.task_values
inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision)
left join intermediate.current_tasks using (model_run_id, task_id)
inner join intermediate.all_scores using (benchmark, score_name)
inner join tasks using (benchmark, dataset_revision, task_id)
where task_values.breakdown = 'all'
