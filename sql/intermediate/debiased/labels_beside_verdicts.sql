-- One row: a sampled label beside the verdict of a judge, under the whole
-- rubric and under its category.
--
-- People who label are no judges here. A verdict that failed has no value to
-- set beside a label.
--
-- built as: table
-- depends on: intermediate.graded_verdicts, intermediate.model_runs,
--     intermediate.sampled_labels, intermediate.wanted_responses, criteria, labellers
with beside as (
    select model_runs.model_run_id, wanted.trial,
        labels.* exclude (value, steps),
        labels.value as label_value,
        verdicts.value as judge_value,
        criteria.weight,
        coalesce(criteria.category, '(none)') as category
    from intermediate.sampled_labels as labels
    inner join intermediate.wanted_responses as wanted using (response_id)
    inner join intermediate.model_runs
        on wanted.model_run_id = model_runs.model_run_id
            and (model_runs.grading = 'ternary') = (labels.steps = 'ternary')
    inner join criteria
        on labels.benchmark = criteria.benchmark
            and labels.dataset_revision = criteria.dataset_revision
            and labels.task_id = criteria.task_id
            and labels.criterion_id = criteria.criterion_id
            and labels.criterion_hash = criteria.content_hash
    inner join intermediate.graded_verdicts as verdicts
        on labels.response_id = verdicts.response_id
            and model_runs.judging_id = verdicts.judging_id
            and labels.criterion_id = verdicts.criterion_id
            and labels.criterion_hash = verdicts.criterion_hash
    where verdicts.value is not null
        and criteria.weight is not null
        and (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
)

select * exclude (category), 'all' as breakdown, '' as label from beside
union all
select * exclude (category), 'category' as breakdown, category as label
from beside
