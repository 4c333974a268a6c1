-- Equation 2 (or 4) for each repetition of the evaluation by itself, over the
-- tasks that are complete in it. Repetitions can be compared where they have
-- the same tasks: where `n_tasks` is `n_tasks_full` of the leaderboard in each.
--
-- built as: view
-- depends on: staging.mean_scores, staging.trial_means
select
    mean_scores.task_set_id,
    mean_scores.model_run_id,
    mean_scores.benchmark,
    mean_scores.dataset_revision,
    mean_scores.split,
    mean_scores.is_own_hard,
    mean_scores.breakdown,
    mean_scores.label,
    mean_scores.judge,
    mean_scores.judge_config_hash,
    mean_scores.template_hash,
    mean_scores.grading,
    mean_scores.judge_trial,
    mean_scores.vintage,
    mean_scores.model,
    mean_scores.model_config_hash,
    mean_scores.score_name,
    trial_means.trial,
    trial_means.n_tasks,
    if(trial_mean < mean_floor, mean_floor, trial_mean) as mean_score,
    trial_mean as raw_mean_score
from staging.trial_means
inner join staging.mean_scores
    using (task_set_id, model_run_id, breakdown, label, score_name)
