-- One row: how many verdicts of a judge on an answer have a label that no sheet
-- drew, over the whole rubric and by category, and how far labels are off.
--
-- They are those of people who label, and of others whose verdicts were
-- imported but for the judge itself and for judges: whoever decided all of an
-- answer is one, unless known to label. People who label are no judges here.
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

unsampled as (
    select decisions.*
    from intermediate.imported_decisions as decisions
    anti join intermediate.sampled_labels as sampled
        on decisions.response_id = sampled.response_id
            and decisions.criterion_id = sampled.criterion_id
            and decisions.criterion_hash = sampled.criterion_hash
            and decisions.steps = sampled.steps
    where decisions.is_label
        or (decisions.benchmark, decisions.judge)
        not in (select (benchmark, judge) from judges)
),

beside as (
    select model_runs.model_run_id, unsampled.task_id, wanted.trial, verdicts.category,
        avg(unsampled.value) - any_value(verdicts.value) as error
    from unsampled
    inner join intermediate.wanted_responses as wanted using (response_id)
    inner join intermediate.model_runs
        on wanted.model_run_id = model_runs.model_run_id
            and (model_runs.grading = 'ternary') = (unsampled.steps = 'ternary')
            and model_runs.judge <> unsampled.judge
    inner join intermediate.current_verdicts as verdicts
        on unsampled.response_id = verdicts.response_id
            and model_runs.judging_id = verdicts.judging_id
            and unsampled.criterion_id = verdicts.criterion_id
            and unsampled.criterion_hash = verdicts.criterion_hash
    where verdicts.value is not null
        and verdicts.weight is not null
        and (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
    group by model_runs.model_run_id, unsampled.task_id, wanted.trial, verdicts.category,
        unsampled.response_id, unsampled.criterion_id
)

select model_run_id, task_id, trial,
    case when grouping(category) = 0 then 'category' else 'all' end as breakdown,
    case when grouping(category) = 0 then category else '' end as label,
    count(*) as n_labels,
    exact_sum(error) as sum_error
from beside
group by model_run_id, task_id, trial, grouping sets ((), (category))
