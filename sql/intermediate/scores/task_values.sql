-- One row: a task's score in a model run, the mean over its complete trials, by
-- breakdown and label of the rubric; NULL without one.
--
-- All counted trials of the model run are wanted: missing ones widen the bounds.
--
-- Points are summed by trial first and turned into scores (`score_of`) later,
-- because several scores share the same points.
--
-- built as: table
-- keeps: model_run_id in (from temp.unchanged_runs)
-- depends on: intermediate.judge_configs, intermediate.model_runs, intermediate.response_points,
--     intermediate.score_bounds, temp.unchanged_runs
with over_trials as (
    select model_run_id, task_id, breakdown, label, label_key,
        count(*) as n_responses,
        exact_sum(points + undecided_negative) as points_lower,
        exact_sum(points + undecided_positive) as points_upper,
        sum(n_decided)::bigint as n_decided,
        sum(n_met) filter (n_decided = n_wanted) as n_met,
        (sum(n_wanted) filter (n_decided = n_wanted))::bigint as n_judged,
        list(trial) filter (n_decided = n_wanted) as trials,
        list(points) filter (n_decided = n_wanted) as trial_points,
        exact_sum(expected_points + undecided_negative) as expected_lower,
        exact_sum(expected_points + undecided_positive) as expected_upper,
        list(expected_points) filter (n_decided = n_wanted) as trial_expected
    from intermediate.response_points
    anti join temp.unchanged_runs using (model_run_id)
    where is_counted
    group by all
),

in_order as (
    -- Sorted here, since an aggregate with an order takes twice as long.
    select
        * exclude (trials, trial_points, trial_expected),
        list_sort(trials) as complete_trials,
        list_select(trial_points, list_grade_up(trials)) as complete_points,
        list_select(trial_expected, list_grade_up(trials)) as complete_expected
    from over_trials
),

scored as (
    select
        in_order.* replace (
            if(is_expected, expected_lower, points_lower) as points_lower,
            if(is_expected, expected_upper, points_upper) as points_upper
        ),
        ranking_id, model_runs.benchmark, model_runs.dataset_revision, n_trials, score_name,
        offset_points, denominator, lowest, highest,
        [
            score_of(points, offset_points, denominator)
            for points in if(is_expected, complete_expected, complete_points)
        ] as trial_values
    from in_order
    inner join intermediate.model_runs using (model_run_id)
    inner join intermediate.judge_configs using (judging_id)
    inner join intermediate.score_bounds using (label_key)
    where has_probabilities or not is_expected
)

select
    model_run_id,
    ranking_id,
    benchmark,
    dataset_revision,
    task_id,
    breakdown,
    label,
    label_key,
    score_name,
    hash(model_run_id, breakdown, label, score_name) as series_id,
    -- Over the trials in their order, so that the last digits of the same
    -- data are the same.
    list_aggregate(trial_values, 'favg') as value,
    -- A trial that was not sampled can still get any possible value.
    (
        score_of(points_lower, n_responses * offset_points, denominator)
        + (n_trials - n_responses) * lowest
    ) / n_trials as value_lower,
    (
        score_of(points_upper, n_responses * offset_points, denominator)
        + (n_trials - n_responses) * highest
    ) / n_trials as value_upper,
    coalesce(len(complete_trials), 0) as n_trials_complete,
    n_trials_complete = n_trials as is_complete,
    n_trials,
    n_decided,
    n_met,
    n_judged,
    lowest,
    highest,
    offset_points,
    denominator,
    complete_trials,
    trial_values
from scored
