-- One row: the mean of one trial of a figure, over the tasks that are complete in
-- that trial.
--
-- built as: table
-- keeps: model_run_id in (from temp.unchanged_runs)
-- depends on: intermediate.figure_values, temp.unchanged_runs
with trial_values as (
    select model_run_id, figure_id, mean_floor,
        unnest(complete_trials) as trial,
        unnest(trial_values) as value
    from intermediate.figure_values
    anti join temp.unchanged_runs using (model_run_id)
)

select
    model_run_id,
    figure_id,
    trial,
    count(*) as n_tasks,
    greatest(exact_avg(value), any_value(mean_floor)) as mean_score,
    exact_avg(value) as raw_mean_score
from trial_values
group by all
