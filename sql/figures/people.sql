-- name: people
-- The decisions of each grader and each person on the same criteria, by task; two
-- people are compared once.
with sides as (
    select *, grader_a as grader, grader_b as person, value_a as a, value_b as b
    from intermediate.agreement_counts
    union all by name
    select *, grader_b as grader, grader_a as person, value_b as a, value_a as b
    from intermediate.agreement_counts
),

named as (
    -- People's ternary decisions are also read as binary ones, for binary graders.
    select *, list_contains($people::varchar[], replace(grader, ' (as binary)', '')) as is_person
    from sides
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = $breakdown
        and not is_member
        and list_contains($people::varchar[], replace(person, ' (as binary)', ''))
        and is_among($graders, grader)
)

select
    if(
        is_person,
        '(people with each other' || if(grader like '% (as binary)', ', as binary)', ')'),
        grader
    ) as grader,
    label,
    n_classes,
    person,
    grader as pair_grader,
    task_id,
    a,
    b,
    n
from named
where not is_person
    or grader < person
    -- A person named in `--judge` is compared with everyone else, in any
    -- order of names.
    or (len($graders::varchar[]) > 0 and not list_contains($graders::varchar[], person))
order by grader, label, pair_grader, person, task_id, a, b
