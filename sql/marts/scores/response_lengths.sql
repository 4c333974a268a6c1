-- The length of a response, and its scores (figure 7 counts only letters and
-- digits).
--
-- built as: view
-- depends on: responses, scores, tasks
select
    response_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    scores.vintage,
    scores.model,
    scores.model_config_hash,
    task_id,
    scores.trial,
    score_name,
    value,
    value_lower,
    value_upper,
    coverage,
    is_complete,
    n_decided,
    n_wanted,
    mean_score,
    is_primary,
    is_latest,
    is_current,
    tasks.field,
    responses.chars_alnum,
    responses.completion_tokens
from scores
inner join tasks using (benchmark, dataset_revision, task_id)
inner join responses using (response_id)
where responses.status = 'ok'
