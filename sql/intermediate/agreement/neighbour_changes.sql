-- One row: how the verdicts of a judge on the criteria of a task change from one
-- arrangement to another, under a label, with sums over paired criteria.
--
-- `measure_of` is met (the values themselves), or the agreement with a grader.
-- Positions and sizes are those of the second arrangement. The grader may be the
-- only one that decided on the response: the judge itself need not have.
--
-- built as: table
-- needs: neighbour_verdicts
-- depends on: intermediate.current_verdicts, graders, neighbour_verdicts
with decided as (
    select *, hash(judge, judge_config_hash, template_hash, grading, judge_trial) as judging_id
    from neighbour_verdicts
    where value is not null
),

paired as (
    select second_verdict.*,
        first_verdict.arrangement as compared_with,
        first_verdict.value as value_a,
        second_verdict.value as value_b
    from decided as first_verdict
    inner join decided as second_verdict
        using (judging_id, response_id, criterion_id, criterion_hash)
    -- The first one by name is the earlier one: alone, grouped, shuffled.
    where first_verdict.arrangement < second_verdict.arrangement
),

others as (
    select response_id, benchmark, criterion_id, graders.grader_id, graders.grader, graders.grading,
        value
    from intermediate.current_verdicts
    semi join paired using (response_id)
    inner join graders using (benchmark)
    where judging_id = graders.grader_id and graders.judge_trial = 1 and value is not null
),

compared as (
    select *, 'met' as measure_of from paired
    union all
    select paired.* replace (
            (value_a = others.value)::double as value_a, (value_b = others.value)::double as value_b
        ),
        'agreement with ' || others.grader as measure_of
    from paired
    inner join others using (benchmark, response_id, criterion_id)
    where others.grader_id <> paired.judging_id
        and (others.grading = 'ternary') = (paired.grading = 'ternary')
),

labelled as (
    select *,
        unnest(['all', 'position', 'size']) as breakdown,
        unnest([
            '',
            ['first third', 'middle third', 'last third'][
                case when n_in_call >= 3 then ceil(3 * position_in_call / n_in_call)::int end
            ],
            n_in_call || ' in a call'
        ]) as label
    from compared
)

select
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    arrangement,
    compared_with,
    measure_of,
    breakdown,
    label,
    task_id,
    count(*) as n,
    exact_sum(value_a) as sum_before,
    exact_sum(value_b) as sum_after,
    exact_sum(value_b - value_a) as sum_change
from labelled
where label is not null
group by all
