-- One row: a verdict of a judge that has a label, under the whole rubric and
-- under its category.
--
-- `factor` is the number of verdicts that a label of a sheet represents; it is
-- NULL for a label that no sheet sampled. Labels are verdicts of people who
-- label, and other imported verdicts, except those of the judge itself and of
-- other judges: a grader who decided a whole response counts as a judge, unless
-- known to label. A failed verdict has no value to compare with a label.
--
-- built as: table
-- needs: intermediate.imported_decisions
-- depends on: intermediate.current_verdicts, intermediate.imported_decisions,
--     intermediate.model_runs, intermediate.sampled_labels, intermediate.task_values,
--     intermediate.wanted_responses, labellers
with judges as (
    select distinct model_runs.benchmark, model_runs.judge
    from intermediate.task_values
    inner join intermediate.model_runs using (model_run_id)
    where task_values.breakdown = 'all' and task_values.value is not null
),

labels as (
    select * from intermediate.sampled_labels
    union all by name
    select decisions.*
    from intermediate.imported_decisions as decisions
    anti join intermediate.sampled_labels using (response_id, criterion_id, criterion_hash, steps)
    where is_label or (benchmark, judge) not in (select (benchmark, judge) from judges)
),

beside as (
    select model_runs.model_run_id, wanted.trial, wanted.task_id, wanted.response_id,
        labels.criterion_id, labels.factor, labels.people,
        avg(labels.value) as label_value,
        verdicts.value as judge_value,
        verdicts.weight, verdicts.category
    from labels
    inner join intermediate.wanted_responses as wanted using (response_id)
    inner join intermediate.model_runs using (model_run_id, judging_id)
    inner join intermediate.current_verdicts as verdicts
        using (response_id, judging_id, criterion_id, criterion_hash)
    where (model_runs.grading = 'ternary') = (labels.steps = 'ternary')
        and model_runs.judge is distinct from labels.judge
        and verdicts.value is not null
        and verdicts.weight is not null
        and (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
    group by all
)

select
    model_run_id,
    trial,
    task_id,
    response_id,
    criterion_id,
    factor,
    people,
    label_value,
    judge_value,
    weight,
    unnest(['all', 'category']) as breakdown,
    unnest(['', category]) as label
from beside
