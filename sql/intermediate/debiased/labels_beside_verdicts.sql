-- One row: a verdict of a judge that has a label, under the whole rubric and
-- under its category.
--
-- `factor` is the number of verdicts that a label of a sheet stands for; a label
-- that no sheet drew has none. Those are of people who label, and of others
-- whose verdicts were imported but for the judge itself and for judges: whoever
-- decided all of a response is one, unless known to label. People who label are
-- no judges here. A verdict that failed has no value to set beside a label.
--
-- built as: table
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
    anti join intermediate.sampled_labels
        using (response_id, criterion_id, criterion_hash, steps)
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
    inner join intermediate.model_runs
        on wanted.model_run_id = model_runs.model_run_id
            and (model_runs.grading = 'ternary') = (labels.steps = 'ternary')
            and model_runs.judge is distinct from labels.judge
    inner join intermediate.current_verdicts as verdicts
        on labels.response_id = verdicts.response_id
            and model_runs.judging_id = verdicts.judging_id
            and labels.criterion_id = verdicts.criterion_id
            and labels.criterion_hash = verdicts.criterion_hash
    where verdicts.value is not null
        and verdicts.weight is not null
        and (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
    group by all
)

select * exclude (category),
    unnest(['all', 'category']) as breakdown,
    unnest(['', category]) as label
from beside
