-- One row: a model run on a leaderboard, with intervals, rank, length and cost:
-- of the whole rubric or of a label, on a split or an own hard selection.
--
-- With the whole rubric, models without a verdict have rows too.
--
-- built as: table
-- depends on: intermediate.current_vintages, intermediate.hiding_runs, intermediate.mean_scores,
--     intermediate.model_run_costs, intermediate.ranks, intermediate.score_intervals,
--     intermediate.unjudged
with vintages as (
    select task_set_id, model_run_id, first_response_at, is_latest
    from intermediate.current_vintages
)

select
    model_run_id,
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    score_name,
    is_primary,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    n_tasks_annotated,
    is_complete,
    n_trials,
    raw_mean_score,
    coverage,
    met_share,
    n_judged,
    mean_score,
    mean_lower,
    mean_upper,
    -- Clipping is monotone, so the ends of the interval are clipped as the mean is.
    if(intervals.ci_low < mean_floor, mean_floor, intervals.ci_low) as ci_low,
    if(intervals.ci_high < mean_floor, mean_floor, intervals.ci_high) as ci_high,
    intervals.ci_low as raw_ci_low,
    intervals.ci_high as raw_ci_high,
    intervals.n_tasks_skipped,
    intervals.unbiased_mean_score,
    intervals.is_small,
    -- Repetitions on different tasks also differ by their tasks.
    case when n_tasks = n_tasks_full then intervals.trials_mean end as trials_mean,
    case when n_tasks = n_tasks_full then intervals.trials_ci_low end as trials_ci_low,
    case when n_tasks = n_tasks_full then intervals.trials_ci_high end as trials_ci_high,
    intervals.met_ci_low,
    intervals.met_ci_high,
    intervals.is_met_small,
    -- Length and cost are of whole responses, on the whole task set.
    case when breakdown = 'all' then costs.mean_chars_alnum end as mean_chars_alnum,
    case when breakdown = 'all' then costs.mean_completion_tokens end as mean_completion_tokens,
    case when breakdown = 'all' then costs.cost_usd end as cost_usd,
    costs.is_judged,
    hiding_runs.may_hide_failures,
    ranks.rank,
    ranks.rank_low,
    ranks.rank_high,
    ranks.n_tasks_ranked,
    vintages.is_latest,
    vintages.first_response_at,
    ranks.latest_rank,
    ranks.latest_rank_low,
    ranks.latest_rank_high,
    ranks.n_tasks_latest_ranked,
    ranks.may_be_first,
    ranks.latest_may_be_first
from intermediate.mean_scores
inner join intermediate.score_intervals as intervals using (figure_id)
inner join vintages using (task_set_id, model_run_id)
left join intermediate.ranks using (figure_id)
left join intermediate.model_run_costs as costs using (task_set_id, model_run_id)
left join intermediate.hiding_runs using (model_run_id)
-- Under labels, models without a verdict on the task set have no row.
where mean_scores.breakdown = 'all' or costs.is_judged
union all by name
select *
from intermediate.unjudged
