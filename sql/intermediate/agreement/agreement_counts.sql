-- One row: a pair of decisions by two graders on the same criteria of a task,
-- with its count.
--
-- Agreement is computed from these counts. Graders are compared in their first
-- repetitions, and a judge's repetitions with each other.
--
-- built as: table
-- needs: temp.graded
-- depends on: temp.graded, temp.graded_breakdowns, graders
with pairs as (
    select first_grader.benchmark,
        first_grader.grader_id as a_id,
        second_grader.grader_id as b_id,
        first_grader.grader as grader_a,
        second_grader.grader as grader_b,
        first_grader.kind as kind_a,
        second_grader.kind as kind_b,
        if(first_grader.grading = 'ternary', 3, 2) as n_classes,
        -- A majority agrees with its own members by construction.
        list_has_any(first_grader.members, second_grader.members) as is_member
    from graders as first_grader
    inner join graders as second_grader using (benchmark)
    where first_grader.grader < second_grader.grader
        -- Ternary gradings are compared with ternary ones, binary with binary.
        and (first_grader.grading = 'ternary') = (second_grader.grading = 'ternary')
        and (
            (first_grader.judge_trial = 1 and second_grader.judge_trial = 1)
            or first_grader.configured = second_grader.configured
        )
)

select
    first_decision.benchmark,
    first_decision.dataset_revision,
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
    first_decision.task_id,
    first_decision.value as value_a,
    second_decision.value as value_b,
    count(*) as n
from temp.graded as first_decision
inner join pairs
    on first_decision.benchmark = pairs.benchmark
        and first_decision.grader_id = pairs.a_id
inner join temp.graded as second_decision using (response_id, criterion_id)
inner join temp.graded_breakdowns using (response_id, criterion_id)
where pairs.b_id = second_decision.grader_id
group by first_decision.benchmark, first_decision.dataset_revision, grader_a, grader_b, kind_a,
    kind_b, n_classes, is_member, first_decision.task_id, value_a, value_b,
    grouping sets ((), (category), (severity), (field), (model), (length))
