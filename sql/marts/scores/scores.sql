-- built as: view
-- depends on: staging.model_runs, staging.response_scores
select
    response_scores.response_id,
    model_runs.benchmark,
    model_runs.dataset_revision,
    response_scores.task_id,
    model_runs.model,
    model_runs.model_config_hash,
    response_scores.trial,
    model_runs.vintage,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    response_scores.score_name,
    response_scores.value,
    response_scores.value_lower,
    response_scores.value_upper,
    response_scores.coverage,
    response_scores.is_complete,
    response_scores.n_decided,
    response_scores.n_wanted
from staging.response_scores
inner join staging.model_runs using (model_run_id)
where response_scores.breakdown = 'all'
