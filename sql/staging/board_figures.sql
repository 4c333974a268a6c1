-- A board's rows with interval, rank, length and cost.
select
    board_rows.benchmark,
    board_rows.dataset_revision,
    board_rows.split,
    board_rows.judge,
    board_rows.judge_config_hash,
    board_rows.template_hash,
    board_rows.grading,
    board_rows.judge_trial,
    board_rows.vintage,
    board_rows.model,
    board_rows.model_config_hash,
    board_rows.score_name,
    board_rows.is_primary,
    board_rows.n_tasks,
    board_rows.n_tasks_wanted,
    board_rows.n_trials,
    board_rows.mean_score,
    -- Clipping is monotone, so the ends of the interval are clipped as the mean is.
    if(clips_mean and intervals.ci_low < 0, 0, intervals.ci_low) as ci_low,
    if(clips_mean and intervals.ci_high < 0, 0, intervals.ci_high) as ci_high,
    board_rows.coverage,
    series_costs.mean_chars_alnum,
    series_costs.cost_usd,
    ranks.rank,
    ranks.n_tasks_ranked,
    board_rows.is_own_hard
from board_rows
left join ranks using (board_id, series_id, score_name)
left join series_costs using (board_id, series_id)
left join intervals
    on
        board_rows.benchmark = intervals.benchmark
        and board_rows.dataset_revision = intervals.dataset_revision
        and board_rows.split = intervals.split
        and board_rows.judge = intervals.judge
        and board_rows.judge_config_hash = intervals.judge_config_hash
        and board_rows.template_hash = intervals.template_hash
        and board_rows.grading = intervals.grading
        and board_rows.judge_trial = intervals.judge_trial
        and board_rows.vintage = intervals.vintage
        and board_rows.model = intervals.model
        and board_rows.model_config_hash = intervals.model_config_hash
        and board_rows.score_name = intervals.score_name
        -- An interval belongs to the figure it was drawn from: it is not shown beside a newer mean.
        and board_rows.n_tasks = intervals.n_tasks
        and abs(board_rows.unclipped_mean - intervals.unclipped_mean) < 1e-12
