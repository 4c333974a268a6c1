-- Equation 2 (or 4) for each repetition of the evaluation by itself, over the
-- tasks that are complete in it. Repetitions can be compared where they have
-- the same tasks: where `n_tasks` is `n_tasks_full` of the leaderboard in each.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.model_run_names, intermediate.trial_means
select names.*, mean_scores.split, mean_scores.is_own_hard,
    trial_means.* exclude (model_run_id, trial_mean),
    case when trial_mean < mean_floor then mean_floor else trial_mean end as mean_score,
    trial_mean as raw_mean_score
from intermediate.trial_means
inner join intermediate.mean_scores using (task_set_id, model_run_id, breakdown, label, score_name)
inner join intermediate.model_run_names as names using (model_run_id)
