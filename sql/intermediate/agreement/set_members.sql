-- One row: a grader in a set: all graders in their first repetition, the
-- repetitions of one judge, or a configured majority.
--
-- People who label are members without a vote: votes are compared with theirs.
--
-- depends on: graders, grader_sets, labellers
with single_graders as (
    select *, (benchmark, judge) in (select (benchmark, judge) from labellers) as is_person
    from graders
    where kind <> 'majority'
)

select
    'all graders' as grader_set,
    benchmark,
    grader_id,
    is_person
from single_graders
where has_voice
union all
select
    configured || ' (trials)' as grader_set,
    benchmark,
    grader_id,
    is_person
from single_graders
where (benchmark, configured) in (select (benchmark, configured) from graders where judge_trial > 1)
union all
select
    majorities.grader as grader_set,
    single_graders.benchmark,
    single_graders.grader_id,
    single_graders.is_person
from grader_sets
inner join graders as majorities
    on grader_sets.benchmark = majorities.benchmark and grader_sets.majority = majorities.grader
inner join single_graders
    on majorities.benchmark = single_graders.benchmark
        and list_contains(majorities.members, single_graders.voice)
        and (majorities.grading = 'ternary') = (single_graders.grading = 'ternary')
where majorities.kind = 'majority'
