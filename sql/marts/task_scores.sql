select
    task_parts.series_id,
    task_parts.panel_id,
    task_parts.benchmark,
    task_parts.dataset_revision,
    task_parts.task_id,
    series.model,
    series.model_config_hash,
    series.vintage,
    series.judge,
    series.judge_config_hash,
    series.template_hash,
    series.grading,
    series.judge_trial,
    task_parts.score_name,
    task_parts.value,
    task_parts.value_lower,
    task_parts.value_upper,
    task_parts.is_complete,
    task_parts.n_trials,
    task_parts.n_trials_complete,
    task_parts.n_decided
from task_parts
inner join series using (series_id)
where task_parts.cut = 'all'
