-- One row: the errors of two members of a set of graders on the criteria of a
-- task, as sums of their sizes, squares and products.
--
-- An error is the difference of a decision from the decision of people on the
-- criterion or, if people decided none of the set's criteria, of the members
-- other than these two. The decision of more than half of them is used; a
-- criterion without one is left out.
--
-- built as: table
-- needs: temp.graded
-- depends on: temp.graded, temp.set_members, graders, labellers
with votes as (
    select graded.*, members.grader_set, graders.grading = 'ternary' as is_ternary
    from temp.graded
    inner join temp.set_members as members using (grader_id, benchmark)
    inner join graders using (grader_id, benchmark)
    where not members.is_person
),

by_people as (
    select graded.response_id, graded.criterion_id,
        graders.grading = 'ternary' as is_ternary,
        count(*) as n,
        count(*) filter (where value = 0) as n_unmet,
        count(*) filter (where value = 1) as n_met
    from temp.graded
    inner join graders using (grader_id, benchmark)
    where graders.judge_trial = 1
        and (graders.benchmark, graders.judge) in (select (benchmark, judge) from labellers)
    group by all
),

by_members as (
    select grader_set, response_id, criterion_id,
        count(*) as n,
        count(*) filter (where value = 0) as n_unmet,
        count(*) filter (where value = 1) as n_met
    from votes
    group by all
),

pairs as (
    select grader_set, response_id, criterion_id, first_vote.benchmark,
        first_vote.dataset_revision, first_vote.task_id, first_vote.is_ternary,
        first_vote.grader_id as grader_a,
        second_vote.grader_id as grader_b,
        first_vote.value as value_a,
        second_vote.value as value_b
    from votes as first_vote
    inner join votes as second_vote using (grader_set, response_id, criterion_id)
    where first_vote.grader_id < second_vote.grader_id
),

judged as (
    select pairs.*, true as is_labelled, n, n_unmet, n_met
    from pairs
    inner join by_people using (response_id, criterion_id, is_ternary)
    union all by name
    select pairs.*, false as is_labelled,
        n - 2 as n,
        n_unmet - (value_a = 0)::bigint - (value_b = 0)::bigint as n_unmet,
        n_met - (value_a = 1)::bigint - (value_b = 1)::bigint as n_met
    from pairs
    inner join by_members using (grader_set, response_id, criterion_id)
),

errors as (
    select
        judged.* exclude (n, n_unmet, n_met),
        case
            when 2 * n_met > n then 1
            when 2 * n_unmet > n then 0
            when 2 * (n - n_met - n_unmet) > n then 0.5
        end as decided,
        abs(value_a - decided)::double as error_a,
        abs(value_b - decided)::double as error_b
    from judged
    where decided is not null
)

select
    benchmark,
    dataset_revision,
    grader_set,
    is_labelled,
    grader_a,
    grader_b,
    task_id,
    count(*) as n,
    sum(error_a) as sum_a,
    sum(error_b) as sum_b,
    sum(error_a * error_a) as sum_aa,
    sum(error_b * error_b) as sum_bb,
    sum(error_a * error_b) as sum_ab
from errors
group by benchmark, dataset_revision, grader_set, is_labelled, grader_a, grader_b, task_id
-- If people decided any criterion of a set, only errors against people count.
qualify is_labelled
    = bool_or(is_labelled) over (partition by benchmark, dataset_revision, grader_set)
