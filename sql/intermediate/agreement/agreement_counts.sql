-- One row: a pair of decisions by two graders on the same criteria of a task,
-- with its count.
--
-- Agreement is computed from these counts. Graders are compared in their first
-- repetitions, and a judge's repetitions with each other.
--
-- built as: table
-- depends on: temp.graded, temp.graded_breakdowns, graders
with pairs as (
    select a.benchmark,
        a.grader_id as a_id,
        b.grader_id as b_id,
        a.grader as grader_a,
        b.grader as grader_b,
        a.kind as kind_a,
        b.kind as kind_b,
        if(a.grading = 'ternary', 3, 2) as n_classes,
        -- A majority agrees with its own members by construction.
        list_has_any(a.members, b.members) as is_member
    from graders as a
    inner join graders as b using (benchmark)
    where a.grader < b.grader
        -- Ternary gradings are compared with ternary ones, binary with binary.
        and (a.grading = 'ternary') = (b.grading = 'ternary')
        and ((a.judge_trial = 1 and b.judge_trial = 1) or a.configured = b.configured)
)

select
    a.benchmark,
    a.dataset_revision,
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    n_classes,
    is_member,
    case
        when grouping(category) = 0 then 'category'
        when grouping(severity) = 0 then 'severity'
        when grouping(field) = 0 then 'field'
        when grouping(model) = 0 then 'model'
        when grouping(length) = 0 then 'length'
        else 'all'
    end as breakdown,
    coalesce(category, severity, field, model, length, '') as label,
    a.task_id,
    a.value as value_a,
    b.value as value_b,
    count(*) as n
from temp.graded as a
inner join pairs on a.benchmark = pairs.benchmark and a.grader_id = pairs.a_id
inner join temp.graded as b using (response_id, criterion_id)
inner join temp.graded_breakdowns using (response_id, criterion_id)
where pairs.b_id = b.grader_id
group by a.benchmark, a.dataset_revision, grader_a, grader_b, kind_a, kind_b,
    n_classes, is_member, a.task_id, value_a, value_b,
    grouping sets ((), (category), (severity), (field), (model), (length))
