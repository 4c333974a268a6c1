select
    score_parts.response_id,
    series.benchmark,
    series.dataset_revision,
    score_parts.task_id,
    series.model,
    series.model_config_hash,
    score_parts.trial,
    series.vintage,
    series.judge,
    series.judge_config_hash,
    series.template_hash,
    series.grading,
    series.judge_trial,
    score_parts.score_name,
    score_parts.value,
    score_parts.value_lower,
    score_parts.value_upper,
    score_parts.coverage,
    score_parts.is_complete,
    score_parts.n_decided,
    score_parts.n_wanted
from score_parts
inner join series using (series_id)
where score_parts.cut = 'all'
