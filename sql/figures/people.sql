-- name: people
-- The decisions of each grader and each person on the same criteria, by task; two
-- people are compared once.
with sides as (
    select *, grader_a as pair_grader, grader_b as person, value_a as grader_value,
        value_b as person_value
    from intermediate.agreement_counts
    union all by name
    select *, grader_b as pair_grader, grader_a as person, value_b as grader_value,
        value_a as person_value
    from intermediate.agreement_counts
),

named as (
    -- People's ternary decisions are also read as binary ones, for binary graders.
    select *,
        list_contains($people, replace(pair_grader, ' (as binary)', '')) as is_person
    from sides
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = $breakdown
        and not is_member
        and list_contains($people, replace(person, ' (as binary)', ''))
        and is_among($graders, pair_grader)
)

select
    if(
        is_person,
        '(people with each other' || if(pair_grader like '% (as binary)', ', as binary)', ')'),
        pair_grader
    ) as grader,
    label,
    n_classes,
    person,
    pair_grader,
    task_id,
    grader_value,
    person_value,
    n
from named
where not is_person
    or pair_grader < person
    -- A person named in `--judge` is compared with everyone else, in any
    -- order of names.
    or not is_among($graders, person)
order by grader, label, pair_grader, person, task_id, grader_value, person_value
