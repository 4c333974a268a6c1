-- A task counts in a series when every trial that the series has in its field is complete for it; its value is the mean
-- over them. Over its whole rubric (cut `all`) and over each category and severity.
with over_trials as (
    select
        series_id,
        task_id,
        field,
        cut,
        label,
        score_name,
        n_trials,
        lowest,
        highest,
        count(*) as n_responses,
        count(value) as n_complete,
        favg(value) as mean_value,
        fsum(value_lower) as sum_lower,
        fsum(value_upper) as sum_upper,
        sum(n_met) as n_met,
        sum(n_decided)::bigint as n_decided,
        sum(n_wanted)::bigint as n_wanted,
        list(value order by trial) as trial_values
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
        over_trials.field,
        over_trials.cut,
        over_trials.label,
        over_trials.score_name,
        if(n_complete = over_trials.n_trials, mean_value, null) as value,
        -- A trial that was not sampled could still be anything.
        (sum_lower + (over_trials.n_trials - n_responses) * lowest)
        / over_trials.n_trials as value_lower,
        (sum_upper + (over_trials.n_trials - n_responses) * highest)
        / over_trials.n_trials as value_upper,
        n_complete = over_trials.n_trials as is_complete,
        over_trials.n_trials,
        over_trials.n_met,
        over_trials.n_decided,
        over_trials.n_wanted,
        over_trials.lowest,
        over_trials.highest,
        -- In the order of the trials; of use where all are complete.
        over_trials.trial_values
    from over_trials
    inner join series using (series_id)
)

select * from final
