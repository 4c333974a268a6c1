-- One row: the mean of one trial of a figure, over the tasks that are complete in
-- that trial.
--
-- built as: table
-- depends on: intermediate.figure_values
with trial_values as (
    select figure_id, mean_floor, unnest(complete_trials) as trial, unnest(trial_values) as value
    from intermediate.figure_values
)

select
    figure_id,
    trial,
    count(*) as n_tasks,
    greatest(exact_avg(value), any_value(mean_floor)) as mean_score,
    exact_avg(value) as raw_mean_score
from trial_values
group by figure_id, trial
