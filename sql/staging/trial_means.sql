-- The mean of each trial over the tasks that are complete in it, not yet clipped.
with trial_values as (
    select
        boards.board_id,
        cut_values.series_id,
        cut_values.cut,
        cut_values.label,
        cut_values.score_name,
        unnest(cut_values.complete_trials) as trial,
        unnest(cut_values.trial_values) as value
    from cut_values
    inner join boards using (benchmark, dataset_revision, task_id)
)

select
    board_id,
    series_id,
    cut,
    label,
    score_name,
    trial,
    count(*) as n_tasks,
    favg(value) as trial_mean
from trial_values
group by all
