-- built as: view
-- depends on: intermediate.all_scores, intermediate.current_tasks, intermediate.model_runs,
--     intermediate.response_scores
select
    response_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    scored.label as category,
    task_id,
    trial,
    score_name,
    value,
    value_lower,
    value_upper,
    coverage,
    is_complete,
    n_decided,
    n_wanted,
    scored.value as mean_score,
    is_primary,
    coalesce(current_tasks.is_latest, false) as is_latest,
    coalesce(current_tasks.is_current, false) as is_current
from intermediate.response_scores as scored
inner join intermediate.model_runs using (model_run_id)
left join intermediate.current_tasks using (model_run_id, task_id)
inner join intermediate.all_scores using (benchmark, score_name)
where scored.breakdown = 'category'
