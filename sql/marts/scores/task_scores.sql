-- built as: view
-- depends on: staging.model_runs, staging.task_values
select
    task_values.model_run_id,
    task_values.ranking_id,
    task_values.benchmark,
    task_values.dataset_revision,
    task_values.task_id,
    model_runs.model,
    model_runs.model_config_hash,
    model_runs.vintage,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    task_values.score_name,
    task_values.value,
    task_values.value_lower,
    task_values.value_upper,
    task_values.is_complete,
    task_values.n_trials,
    task_values.n_trials_complete,
    task_values.n_decided
from staging.task_values
inner join staging.model_runs using (model_run_id)
where task_values.breakdown = 'all'
