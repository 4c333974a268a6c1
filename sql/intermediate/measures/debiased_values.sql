-- One row: a task of a figure with labels, with its values and one of its
-- labels; a task without labels has one row with NULL.
--
-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.figure_labels,
--     intermediate.figure_values, intermediate.rubric_weights
select
    figure_id,
    without_labels,
    n_labels,
    n_tasks_labelled,
    n_tasks_uncovered,
    n_tasks,
    figure_values.task_id,
    response_id,
    criterion_id,
    offset_points / denominator as known_offset,
    weights.positive / denominator as positive,
    weights.negative / denominator as negative,
    figure_values.value as judged,
    contribution,
    label_value,
    judge_value,
    factor
from intermediate.debiased_figures
inner join intermediate.figure_values using (figure_id)
left join (from intermediate.figure_labels where factor is not null) as labels
    using (figure_id, task_id)
inner join intermediate.rubric_weights as weights using (label_key)
