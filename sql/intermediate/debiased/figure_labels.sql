-- One row: a label that a debiased figure rests on, with what the verdict adds
-- to its task's value if it is met.
--
-- Labels on a trial that the judge has not decided are left out, since the
-- trial is not in the judge's own score.
--
-- built as: table
-- depends on: intermediate.labels_beside_verdicts, intermediate.mean_scores,
--     intermediate.score_bounds, intermediate.task_set_members, intermediate.task_values
select mean_scores.figure_id, mean_scores.task_set_id, labels.model_run_id, labels.breakdown,
    labels.label, bounds.score_name, labels.task_id, labels.response_id, labels.criterion_id,
    labels.label_value, labels.judge_value, labels.factor, labels.people,
    labels.weight / (bounds.denominator * task_values.n_trials_complete) as contribution
from intermediate.labels_beside_verdicts as labels
inner join intermediate.task_values using (model_run_id, task_id, breakdown, label)
inner join intermediate.score_bounds as bounds
    on task_values.benchmark = bounds.benchmark
        and task_values.dataset_revision = bounds.dataset_revision
        and task_values.task_id = bounds.task_id
        and task_values.breakdown = bounds.breakdown
        and task_values.label = bounds.label
        and task_values.score_name = bounds.score_name
inner join intermediate.task_set_members as members
    on labels.benchmark = members.benchmark
        and labels.dataset_revision = members.dataset_revision
        and labels.task_id = members.task_id
inner join intermediate.mean_scores
    on members.task_set_id = mean_scores.task_set_id
        and labels.model_run_id = mean_scores.model_run_id
        and labels.breakdown = mean_scores.breakdown
        and labels.label = mean_scores.label
        and bounds.score_name = mean_scores.score_name
where list_contains(task_values.complete_trials, labels.trial)
