-- One row: a bin of a judge's probabilities on the criteria of a task under a
-- label, with the sums of the judge's probabilities (p) and of another grader's
-- values (y), of their squares, and of their products.
--
-- A judge with probabilities is compared with every other judge and person, each
-- in the first repetition, and with several people together, whose decisions are
-- pooled. People are those who label; where nobody does, it is not known which
-- imported graders are people, so all of them are. Labels are those of criteria:
-- category, severity, sign of the weight, and kind by its words.
--
-- built as: table
-- needs: temp.graded
-- depends on: temp.graded, criteria, graders, intermediate.judge_configs, labellers
with pairs as (
    select benchmark, judges.grader_id,
        others.grader_id as reference_id,
        judges.grader as judge,
        others.grader as reference,
        others.kind = 'imported'
        and (
            (benchmark, others.judge) in (select (benchmark, judge) from labellers)
            or benchmark not in (select benchmark from labellers)
        ) as is_person
    from graders as judges
    inner join graders as others using (benchmark, judge_trial)
    -- The id of a judge as a grader is its `judging_id`.
    where judges.grader_id in (
            select judging_id
            from intermediate.judge_configs
            where has_probabilities
        )
        and judge_trial = 1
        and judges.grader <> others.grader
        -- Both decide on the same steps. `configured` is a judge's name without its
        -- repetition: no judge is compared with itself.
        and (judges.grading = 'ternary') = (others.grading = 'ternary')
        and judges.configured is distinct from others.configured
        and others.kind <> 'majority'
),

references_of_pairs as (
    select benchmark, grader_id, reference_id, judge, reference
    from pairs
    union all
    select benchmark, grader_id, reference_id, judge, '(people together)' as reference
    from pairs
    where is_person
    -- Only if there are several people.
    qualify count(*) over (partition by benchmark, grader_id) > 1
),

breakdown_labels as (
    -- The two lists are unnested side by side; a missing label is left out below.
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
    select benchmark, dataset_revision, judge, reference, task_id, breakdown_labels.breakdown,
        unnest(breakdown_labels.labels) as label,
        judged.probability,
        reference_verdicts.value
    from temp.graded as judged
    inner join breakdown_labels using (benchmark, dataset_revision, task_id, criterion_id)
    inner join references_of_pairs using (benchmark, grader_id)
    inner join temp.graded as reference_verdicts
        on references_of_pairs.reference_id = reference_verdicts.grader_id
            and judged.response_id = reference_verdicts.response_id
            and judged.criterion_id = reference_verdicts.criterion_id
)

select
    benchmark,
    dataset_revision,
    judge,
    reference,
    breakdown,
    label,
    task_id,
    -- Bins of a tenth with their upper ends; the first has 0, too.
    greatest(ceil(10 * probability)::bigint - 1, 0) as bin,
    count(*) as n,
    exact_sum(probability) as sum_p,
    exact_sum(value) as sum_y,
    exact_sum(probability * probability) as sum_pp,
    exact_sum(probability * value) as sum_py,
    exact_sum(value * value) as sum_yy
from compared
where label is not null
group by all
