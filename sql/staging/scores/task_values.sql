-- One row: a task's score in a model run, the mean over its complete trials, by
-- breakdown and label of the rubric; NULL without one.
--
-- A task counts in a model run with the trials that are complete for it; its
-- value is the mean over them. Wanted are all trials of the model run: what is
-- missing of them is in the bounds. Over its whole rubric (breakdown `all`) and
-- over each category and severity.
--
-- built as: table
-- depends on: staging.model_runs, staging.response_scores
with over_trials as (
    select
        model_run_id,
        task_id,
        breakdown,
        label,
        score_name,
        n_trials,
        lowest,
        highest,
        count(*) as n_responses,
        fsum(value_lower) as sum_lower,
        fsum(value_upper) as sum_upper,
        sum(n_decided)::bigint as n_decided,
        sum(n_met) filter (is_complete) as n_met,
        (sum(n_wanted) filter (is_complete))::bigint as n_judged,
        list(trial order by trial) filter (is_complete) as complete_trials,
        list(value order by trial) filter (is_complete) as trial_values
    from staging.response_scores
    group by all
),

final as (
    select
        model_runs.model_run_id,
        model_runs.ranking_id,
        model_runs.benchmark,
        model_runs.dataset_revision,
        over_trials.task_id,
        over_trials.breakdown,
        over_trials.label,
        over_trials.score_name,
        -- Over the trials in their order, so that the last digits of the same
        -- data are the same.
        list_aggregate(over_trials.trial_values, 'favg') as value,
        -- A trial that was not sampled could still be anything.
        (sum_lower + (over_trials.n_trials - n_responses) * lowest)
        / over_trials.n_trials as value_lower,
        (sum_upper + (over_trials.n_trials - n_responses) * highest)
        / over_trials.n_trials as value_upper,
        coalesce(len(complete_trials), 0) as n_trials_complete,
        n_trials_complete = over_trials.n_trials as is_complete,
        over_trials.n_trials,
        over_trials.n_decided,
        over_trials.n_met,
        over_trials.n_judged,
        over_trials.lowest,
        over_trials.highest,
        over_trials.complete_trials,
        over_trials.trial_values
    from over_trials
    inner join staging.model_runs using (model_run_id)
)

select * from final
