-- built as: view
-- depends on: intermediate.all_scores, intermediate.current_tasks, intermediate.model_runs,
--     intermediate.response_scores
select
    scored.response_id,
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
    scored.task_id,
    scored.trial,
    score_name,
    scored.value,
    scored.value_lower,
    scored.value_upper,
    scored.coverage,
    scored.is_complete,
    scored.n_decided,
    scored.n_wanted,
    scored.value as mean_score,
    all_scores.is_primary,
    coalesce(current_tasks.is_latest, false) as is_latest,
    coalesce(current_tasks.is_current, false) as is_current
from intermediate.response_scores as scored
inner join intermediate.model_runs using (model_run_id)
left join intermediate.current_tasks using (model_run_id, task_id)
inner join intermediate.all_scores using (benchmark, score_name)
where scored.breakdown = 'all'
