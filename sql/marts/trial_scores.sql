-- Equation 2 (or 4) for each repetition of the evaluation by itself, over the tasks that are complete in it. Repetitions
-- can be compared where they have the same tasks: where `n_tasks` is `n_tasks_full` of the leaderboard in each.
select
    cut_rows.board_id,
    cut_rows.series_id,
    cut_rows.benchmark,
    cut_rows.dataset_revision,
    cut_rows.split,
    cut_rows.is_own_hard,
    cut_rows.cut,
    cut_rows.label,
    cut_rows.judge,
    cut_rows.judge_config_hash,
    cut_rows.template_hash,
    cut_rows.grading,
    cut_rows.judge_trial,
    cut_rows.vintage,
    cut_rows.model,
    cut_rows.model_config_hash,
    cut_rows.score_name,
    trial_means.trial,
    trial_means.n_tasks,
    if(trial_mean < mean_floor, mean_floor, trial_mean) as mean_score,
    trial_mean as raw_mean_score
from trial_means
inner join cut_rows using (board_id, series_id, cut, label, score_name)
