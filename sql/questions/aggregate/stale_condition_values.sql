-- One row: a task's score under a condition and its baseline, in one of the
-- given differences.
with chosen as (
    select
        figure_id,
        any_value(pair_id) as pair_id,
        any_value(task_set_id) as task_set_id,
        any_value(breakdown) as breakdown,
        any_value(label) as label,
        any_value(score_name) as score_name
    from staging.condition_figures
    where list_contains($figures::varchar[], figure_id)
    group by figure_id
)

select
    chosen.figure_id,
    condition_values.baseline_value,
    condition_values.value
from chosen
inner join staging.condition_values
    using (pair_id, breakdown, label, score_name)
inner join staging.task_set_members
    on
        chosen.task_set_id = task_set_members.task_set_id
        and condition_values.task_id = task_set_members.task_id
order by chosen.figure_id, condition_values.task_id
