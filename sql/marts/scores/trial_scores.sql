-- Equation 2 (or 4) for each repetition of the evaluation, over the tasks that
-- are complete in it. Repetitions are comparable if they have the same tasks: if
-- `n_tasks` equals the leaderboard's `n_tasks_full` in each.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.model_runs, intermediate.trial_means
select
    model_run_id,
    names.benchmark,
    names.dataset_revision,
    names.judge,
    names.judge_config_hash,
    names.template_hash,
    names.grading,
    names.judge_trial,
    names.vintage,
    names.model,
    names.model_config_hash,
    mean_scores.split,
    mean_scores.is_own_hard,
    mean_scores.task_set_id,
    mean_scores.breakdown,
    mean_scores.label,
    mean_scores.score_name,
    trial,
    trial_means.n_tasks,
    trial_means.mean_score,
    trial_means.raw_mean_score
from intermediate.trial_means
inner join intermediate.mean_scores using (figure_id, model_run_id)
inner join intermediate.model_runs as names using (model_run_id)
