-- One row: a sampled label of a figure.
select
    figure_id,
    task_id,
    contribution,
    label_value,
    judge_value,
    factor
from staging.figure_labels
where list_contains($figures::varchar[], figure_id)
order by figure_id, task_id, response_id, criterion_id
