-- One row: a grader in a set: of all graders, each in its first repetition, of
-- the repetitions of one judge, or of a configured majority.
--
-- People who label are members that have no vote: what votes are held against.
--
-- depends on: graders, grader_sets, labellers
with members as (
    select *, (benchmark, judge) in (select (benchmark, judge) from labellers) as is_person
    from graders
    where kind <> 'majority'
)

select 'all graders' as grader_set, benchmark, grader_id, is_person
from members
where has_voice
union all
select configured || ' (trials)' as grader_set, benchmark, grader_id, is_person
from members
where (benchmark, configured) in (select (benchmark, configured) from graders where judge_trial > 1)
union all
select majorities.grader as grader_set, members.benchmark, members.grader_id, members.is_person
from grader_sets
inner join graders as majorities using (benchmark)
inner join members
    on majorities.benchmark = members.benchmark
        and list_contains(majorities.members, members.voice)
        and (majorities.grading = 'ternary') = (members.grading = 'ternary')
where grader_sets.majority = majorities.grader and majorities.kind = 'majority'
