-- The rows of all leaderboards, with intervals, rank, length and cost.
select
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
    cut_rows.is_primary,
    cut_rows.n_tasks,
    cut_rows.n_tasks_wanted,
    cut_rows.is_complete,
    cut_rows.n_trials,
    cut_rows.mean_score,
    -- Clipping is monotone, so the ends of the interval are clipped as the mean is.
    if(clips_mean and intervals.ci_low < 0, 0, intervals.ci_low) as ci_low,
    if(clips_mean and intervals.ci_high < 0, 0, intervals.ci_high) as ci_high,
    intervals.is_small,
    intervals.trials_mean,
    intervals.trials_ci_low,
    intervals.trials_ci_high,
    cut_rows.mean_lower,
    cut_rows.mean_upper,
    cut_rows.coverage,
    cut_rows.met_share,
    intervals.met_ci_low,
    intervals.met_ci_high,
    intervals.is_met_small,
    cut_rows.n_judged,
    series_costs.mean_chars_alnum,
    series_costs.mean_completion_tokens,
    series_costs.cost_usd,
    ranks.rank,
    ranks.n_tasks_ranked,
    series.is_latest,
    series.first_answered_at,
    ranks.latest_rank,
    ranks.n_tasks_latest_ranked
from cut_rows
inner join series using (series_id)
left join ranks using (board_id, series_id, cut, label, score_name)
left join series_costs
    on
        cut_rows.board_id = series_costs.board_id
        and cut_rows.series_id = series_costs.series_id
        -- Length and cost are those of whole answers, on the whole board.
        and cut_rows.cut = 'all'
left join intervals
    on
        cut_rows.figure_id = intervals.figure_id
        -- An interval belongs to the values it was drawn from: it is not shown beside newer ones.
        and cut_rows.basis = intervals.basis
