-- One row: a sampled label beside the verdict of a judge, under the whole
-- rubric and under its category.
--
-- People who label are no judges here. A verdict that failed has no value to
-- set beside a label.
--
-- built as: table
-- depends on: intermediate.current_verdicts, intermediate.model_runs,
--     intermediate.sampled_labels, intermediate.wanted_responses, labellers
with beside as (
    select model_runs.model_run_id, wanted.trial,
        labels.* exclude (value, steps),
        labels.value as label_value,
        verdicts.value as judge_value,
        verdicts.weight, verdicts.category
    from intermediate.sampled_labels as labels
    inner join intermediate.wanted_responses as wanted using (response_id)
    inner join intermediate.model_runs
        on wanted.model_run_id = model_runs.model_run_id
            and (model_runs.grading = 'ternary') = (labels.steps = 'ternary')
    inner join intermediate.current_verdicts as verdicts
        on labels.response_id = verdicts.response_id
            and model_runs.judging_id = verdicts.judging_id
            and labels.criterion_id = verdicts.criterion_id
            and labels.criterion_hash = verdicts.criterion_hash
    where verdicts.value is not null
        and verdicts.weight is not null
        and (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
)

select * exclude (category), 'all' as breakdown, '' as label from beside
union all
select * exclude (category), 'category' as breakdown, category as label
from beside
