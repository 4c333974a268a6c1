-- One row: a grader in a set: all graders in their first repetition, the
-- repetitions of one judge, or a configured majority.
--
-- People who label are members without a vote: votes are compared with theirs.
--
-- depends on: graders, grader_sets, labellers
with members as (
    select *, (benchmark, judge) in (select (benchmark, judge) from labellers) as is_person
    from graders
    where kind <> 'majority'
)

select
    'all graders' as grader_set,
    benchmark,
    grader_id,
    is_person
from members
where has_voice
union all
select
    configured || ' (trials)' as grader_set,
    benchmark,
    grader_id,
    is_person
from members
where (benchmark, configured) in (select (benchmark, configured) from graders where judge_trial > 1)
union all
select
    majorities.grader as grader_set,
    members.benchmark,
    members.grader_id,
    members.is_person
from grader_sets
inner join graders as majorities using (benchmark)
inner join members
    on majorities.benchmark = members.benchmark
        and list_contains(majorities.members, members.voice)
        and (majorities.grading = 'ternary') = (members.grading = 'ternary')
where grader_sets.majority = majorities.grader and majorities.kind = 'majority'
