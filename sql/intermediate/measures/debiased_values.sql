-- One row: a task of a figure with labels, with what is known of it without
-- them, beside each of its labels; once, with NULL, where it has none.
--
-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.figure_labels,
--     intermediate.rubric_weights, intermediate.score_bounds, intermediate.task_set_members,
--     intermediate.task_values
select figures.figure_id, figures.without_labels, figures.n_labels, figures.n_tasks_labelled,
    figures.n_tasks_uncovered, figures.n_tasks, task_values.task_id, labels.response_id,
    labels.criterion_id,
    bounds.offset_points / bounds.denominator as known_offset,
    weights.positive / bounds.denominator as positive,
    weights.negative / bounds.denominator as negative,
    task_values.value as judged,
    labels.contribution, labels.label_value, labels.judge_value, labels.factor
from intermediate.debiased_figures as figures
inner join intermediate.task_set_members as members using (task_set_id)
inner join intermediate.task_values
    on figures.model_run_id = task_values.model_run_id
        and members.task_id = task_values.task_id
        and figures.breakdown = task_values.breakdown
        and figures.label = task_values.label
        and figures.score_name = task_values.score_name
inner join intermediate.score_bounds as bounds
    on task_values.benchmark = bounds.benchmark
        and task_values.dataset_revision = bounds.dataset_revision
        and task_values.task_id = bounds.task_id
        and task_values.breakdown = bounds.breakdown
        and task_values.label = bounds.label
        and task_values.score_name = bounds.score_name
inner join intermediate.rubric_weights as weights
    on bounds.benchmark = weights.benchmark
        and bounds.dataset_revision = weights.dataset_revision
        and bounds.task_id = weights.task_id
        and bounds.breakdown = weights.breakdown
        and bounds.label = weights.label
left join intermediate.figure_labels as labels
    on figures.figure_id = labels.figure_id and task_values.task_id = labels.task_id
where task_values.value is not null
