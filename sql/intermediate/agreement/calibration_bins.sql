-- One row: a bin of a judge's probabilities on the criteria of a task under a
-- label, with the sums of the judge's and another grader's values.
--
-- A judge with probabilities is compared with every other judge and person, each
-- in the first repetition, and with several people together, whose decisions are
-- pooled. People are those who label; where nobody does, it is not known which
-- imported graders are people, so all of them are. Labels are those of criteria:
-- category, severity, sign of the weight, and kind by its words.
--
-- built as: table
-- depends on: temp.graded, criteria, graders, intermediate.judge_configs, labellers
with pairs as (
    select benchmark, a.grader_id,
        b.grader_id as reference_id,
        a.grader as judge,
        b.grader as reference,
        b.kind = 'imported'
        and (
            (benchmark, b.judge) in (select (benchmark, judge) from labellers)
            or benchmark not in (select benchmark from labellers)
        ) as is_person
    from graders as a
    inner join graders as b using (benchmark, judge_trial)
    where a.grader_id in (select judging_id from intermediate.judge_configs where has_probabilities)
        and judge_trial = 1
        and a.grader <> b.grader
        and (a.grading = 'ternary') = (b.grading = 'ternary')
        and a.configured is distinct from b.configured
        and b.kind <> 'majority'
),

references_of_pairs as (
    select benchmark, grader_id, reference_id, judge, reference
    from pairs
    union all
    select benchmark, grader_id, reference_id, judge, '(people together)' as reference
    from pairs
    where is_person
    qualify count(*) over (partition by benchmark, grader_id) > 1
),

labels as (
    select benchmark, dataset_revision, task_id, criterion_id,
        unnest(['all', 'category', 'severity', 'sign', 'kind']) as breakdown,
        unnest([
            [''], [category], [severity],
            [case when weight < 0 then 'negative weight' else 'positive weight' end],
            case when len(kinds_of(title)) > 0 then kinds_of(title) else ['plain'] end
        ]) as labels
    from criteria
),

compared as (
    select benchmark, dataset_revision, judge, reference, task_id, labels.breakdown,
        unnest(labels.labels) as label,
        a.probability as p,
        b.value as y
    from temp.graded as a
    inner join labels using (benchmark, dataset_revision, task_id, criterion_id)
    inner join references_of_pairs as compared_with using (benchmark, grader_id)
    inner join temp.graded as b
        on compared_with.reference_id = b.grader_id
            and a.response_id = b.response_id
            and a.criterion_id = b.criterion_id
)

select
    benchmark,
    dataset_revision,
    judge,
    reference,
    breakdown,
    label,
    task_id,
    greatest(ceil(10 * p)::bigint - 1, 0) as bin,
    count(*) as n,
    exact_sum(p) as sum_p,
    exact_sum(y) as sum_y,
    exact_sum(p * p) as sum_pp,
    exact_sum(p * y) as sum_py,
    exact_sum(y * y) as sum_yy
from compared
where label is not null
group by all
