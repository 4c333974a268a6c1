-- Equation 2 (or 4) for each repetition of the evaluation, over the tasks that
-- are complete in it. Repetitions are comparable if they have the same tasks: if
-- `n_tasks` equals the leaderboard's `n_tasks_full` in each.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.trial_means
select
    model_run_id,
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
    split,
    is_own_hard,
    task_set_id,
    breakdown,
    label,
    score_name,
    trial,
    trial_means.n_tasks,
    trial_means.mean_score,
    trial_means.raw_mean_score
from intermediate.trial_means
inner join intermediate.mean_scores using (figure_id, model_run_id)
