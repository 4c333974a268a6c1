-- A task counts in a series with the trials that are complete for it; its value is the mean over them. Wanted are all
-- trials of the series: what is missing of them is in the bounds. Over its whole rubric (cut `all`) and over each
-- category and severity.
with over_trials as (
    select
        series_id,
        task_id,
        cut,
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
    from score_parts
    group by all
),

final as (
    select
        series.series_id,
        series.panel_id,
        series.benchmark,
        series.dataset_revision,
        over_trials.task_id,
        over_trials.cut,
        over_trials.label,
        over_trials.score_name,
        -- Over the trials in their order, so that the last digits of the same data are the same.
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
    inner join series using (series_id)
)

select * from final
