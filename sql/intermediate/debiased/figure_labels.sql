-- One row: a label in a figure of a leaderboard, with the verdict's contribution
-- to its task's value if it is met.
--
-- Labels on a trial that the judge has not decided are left out, because the
-- trial is not in the judge's own score.
--
-- built as: table
-- needs: intermediate.labels_beside_verdicts
-- depends on: intermediate.figure_values, intermediate.labels_beside_verdicts
select
    figure_values.figure_id,
    task_id,
    response_id,
    criterion_id,
    factor,
    people,
    label_value,
    judge_value,
    labels.weight / (denominator * n_trials_complete) as contribution
from intermediate.labels_beside_verdicts as labels
inner join intermediate.figure_values using (model_run_id, task_id, breakdown, label)
where list_contains(complete_trials, labels.trial)
