-- One row: an imported grader's decision on a criterion of a response, binary or
-- ternary; the mean over repetitions.
--
-- built as: table
-- depends on: intermediate.graded_verdicts, labellers
select
    benchmark,
    dataset_revision,
    response_id,
    task_id,
    criterion_id,
    criterion_hash,
    judge,
    case when grading = 'ternary' then 'ternary' else 'binary' end as steps,
    round(avg(value), 12) as value,
    bool_or((benchmark, judge) in (select (benchmark, judge) from labellers)) as is_label
from intermediate.graded_verdicts
where source = 'imported' and rubric = 'original' and value is not null
group by all
