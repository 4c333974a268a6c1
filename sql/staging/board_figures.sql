-- The rows of all leaderboards, with intervals, rank, length and cost; on whole boards also who has no verdict.
with judged as (
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
        cut_rows.n_tasks_full,
        cut_rows.n_tasks_wanted,
        cut_rows.is_complete,
        cut_rows.n_trials,
        cut_rows.mean_score,
        -- Clipping is monotone, so the ends of the interval are clipped as the mean is.
        if(intervals.ci_low < mean_floor, mean_floor, intervals.ci_low) as ci_low,
        if(intervals.ci_high < mean_floor, mean_floor, intervals.ci_high) as ci_high,
        cut_rows.raw_mean_score,
        intervals.ci_low as raw_ci_low,
        intervals.ci_high as raw_ci_high,
        intervals.is_small,
        -- Repetitions on other tasks differ by their tasks.
        if(n_tasks = n_tasks_full, intervals.trials_mean, null) as trials_mean,
        if(n_tasks = n_tasks_full, intervals.trials_ci_low, null) as trials_ci_low,
        if(n_tasks = n_tasks_full, intervals.trials_ci_high, null) as trials_ci_high,
        cut_rows.mean_lower,
        cut_rows.mean_upper,
        cut_rows.coverage,
        cut_rows.met_share,
        intervals.met_ci_low,
        intervals.met_ci_high,
        intervals.is_met_small,
        cut_rows.n_judged,
        -- Length and cost are those of whole answers, on the whole board.
        if(cut_rows.cut = 'all', series_costs.mean_chars_alnum, null)
            as mean_chars_alnum,
        if(cut_rows.cut = 'all', series_costs.mean_completion_tokens, null)
            as mean_completion_tokens,
        if(cut_rows.cut = 'all', series_costs.cost_usd, null) as cost_usd,
        series_costs.is_judged,
        ranks.rank,
        ranks.rank_low,
        ranks.rank_high,
        ranks.n_tasks_ranked,
        series.is_latest,
        series.first_answered_at,
        ranks.latest_rank,
        ranks.latest_rank_low,
        ranks.latest_rank_high,
        ranks.n_tasks_latest_ranked
    from cut_rows
    inner join series using (series_id)
    left join ranks using (board_id, series_id, cut, label, score_name)
    left join series_costs using (board_id, series_id)
    left join intervals
        on
            cut_rows.figure_id = intervals.figure_id
            -- An interval belongs to the values it was drawn from: it is not shown beside newer ones.
            and cut_rows.basis = intervals.basis
    -- Under labels there is nothing to say of who has no verdict on the board.
    where cut_rows.cut = 'all' or series_costs.is_judged
)

select * from judged
union all by name
select * from unjudged
