-- One row: a label beside the verdict of a judge, under the whole rubric and
-- under its category; without a factor if no sheet drew it.
--
-- Labels that no sheet drew are those of everybody whose verdicts were
-- imported, but for the judge itself. People who label are no judges here. A
-- verdict that failed has no value to set beside a label.
--
-- built as: table
-- depends on: staging.graded_verdicts, staging.imported_decisions,
--     staging.model_runs, staging.sampled_labels, staging.wanted_responses,
--     criteria, labellers
with judged as (
    select
        model_runs.model_run_id,
        model_runs.judging_id,
        model_runs.judge,
        case
            when model_runs.grading = 'ternary' then 'ternary' else 'binary'
        end as steps,
        wanted.response_id,
        wanted.trial
    from staging.wanted_responses as wanted
    inner join staging.model_runs using (model_run_id)
    where
        (model_runs.benchmark, model_runs.judge)
        not in (select (benchmark, judge) from labellers)
),

labels as (
    select
        judged.model_run_id,
        judged.judging_id,
        judged.trial,
        sampled_labels.* exclude (steps)
    from judged
    inner join staging.sampled_labels using (response_id, steps)
    union all by name
    select
        judged.model_run_id,
        judged.judging_id,
        judged.trial,
        decisions.* exclude (judge, value, is_label, steps),
        round(avg(decisions.value), 12) as value,
        list_sort(list(distinct decisions.judge)) as people
    from judged
    inner join staging.imported_decisions as decisions
        on
            judged.response_id = decisions.response_id
            and judged.steps = decisions.steps
            and judged.judge <> decisions.judge
    anti join staging.sampled_labels as sampled
        on
            decisions.response_id = sampled.response_id
            and decisions.criterion_id = sampled.criterion_id
            and decisions.criterion_hash = sampled.criterion_hash
            and decisions.steps = sampled.steps
    group by all
),

beside as (
    select
        labels.* exclude (value, judging_id),
        labels.value as label_value,
        verdicts.value as judge_value,
        criteria.weight,
        coalesce(criteria.category, '(none)') as category
    from labels
    inner join criteria
        on
            labels.benchmark = criteria.benchmark
            and labels.dataset_revision = criteria.dataset_revision
            and labels.task_id = criteria.task_id
            and labels.criterion_id = criteria.criterion_id
            and labels.criterion_hash = criteria.content_hash
    inner join staging.graded_verdicts as verdicts
        on
            labels.response_id = verdicts.response_id
            and labels.judging_id = verdicts.judging_id
            and labels.criterion_id = verdicts.criterion_id
            and labels.criterion_hash = verdicts.criterion_hash
    where verdicts.value is not null and criteria.weight is not null
)

select * exclude (category), 'all' as breakdown, '' as label from beside
union all
select * exclude (category), 'category' as breakdown, category as label
from beside
