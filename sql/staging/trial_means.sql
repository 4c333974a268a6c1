-- The mean of each trial over the tasks that are complete in all of them, not yet clipped.
with trial_values as (
    select
        boards.board_id,
        cut_values.series_id,
        cut_values.cut,
        cut_values.label,
        cut_values.score_name,
        unnest(field_trials.trials) as trial,
        unnest(cut_values.trial_values) as value
    from cut_values
    inner join field_trials
        on
            cut_values.series_id = field_trials.series_id
            and cut_values.field is not distinct from field_trials.field
    inner join boards
        on
            cut_values.benchmark = boards.benchmark
            and cut_values.dataset_revision = boards.dataset_revision
            and cut_values.task_id = boards.task_id
    where cut_values.is_complete
)

select
    board_id,
    series_id,
    cut,
    label,
    score_name,
    trial,
    favg(value) as trial_mean
from trial_values
group by all
