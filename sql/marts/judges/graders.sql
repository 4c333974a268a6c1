-- Judges and people in one repetition each, and the majorities of several.
--
-- `voice` is a grader's name as a member of a majority, and `configured` its name
-- without the repetition (`temp.judges`). A grader with `has_voice` belongs to the set
-- of all graders of its benchmark.
--
-- built as: table
-- depends on: temp.judges, grader_sets
with majorities as (
    -- Configured majorities; `grader_sets` has one row for each. Their members may
    -- have been named with the suffix that a voice does not have.
    select grader_sets.benchmark,
        hash('configured', grader_sets.benchmark, majority) as grader_id,
        majority as grader,
        list_transform(any_value(members), lambda m: replace(m, ' (as binary)', '')) as members,
        list_sort(list_distinct(flatten(list(revision_ids)))) as revision_ids,
        if(bool_and(grading = 'ternary'), 'ternary', 'binary') as grading
    from grader_sets
    left join temp.judges
        on grader_sets.benchmark = judges.benchmark and list_contains(members, judges.grader)
    group by grader_sets.benchmark, majority
    union all
    -- All judges of a data-set revision, if there are at least three; else all judges
    -- and imported graders together. A configured majority, or a judge, of the same
    -- name takes its place.
    select benchmark,
        hash('majority', revision_id) as grader_id,
        'majority' as grader,
        list_sort(if(
            count(*) filter (where kind = 'judge') >= 3,
            list(voice) filter (where kind = 'judge'),
            list(voice)
        )) as members,
        [revision_id] as revision_ids,
        if(bool_and(grading = 'ternary'), 'ternary', 'binary') as grading
    from (select *, unnest(revision_ids) as revision_id from temp.judges)
    where has_voice
        and (benchmark, 'majority') not in (select (benchmark, majority) from grader_sets)
        and (benchmark, 'majority') not in (select (benchmark, grader) from temp.judges)
    group by benchmark, revision_id
    having count(*) >= 3
    union all
    -- The repetitions of one judge, on any rubric; they have one grading.
    select benchmark,
        hash('trials', benchmark, configured) as grader_id,
        configured || ' (majority of trials)' as grader,
        list_sort(list(voice)) as members,
        list_sort(list_distinct(flatten(list(revision_ids)))) as revision_ids,
        any_value(grading) as grading
    from temp.judges
    group by benchmark, configured
    having count(*) >= 3
)

select
    grader_id,
    grader,
    kind,
    configured,
    judge,
    judge_trial,
    rubric,
    grading,
    benchmark,
    revision_ids,
    voice,
    has_voice,
    [voice] as members
from temp.judges
union all by name
select
    grader_id,
    grader,
    'majority' as kind,
    null as configured,
    null as judge,
    1 as judge_trial,
    null as rubric,
    grading,
    benchmark,
    revision_ids,
    null as voice,
    false as has_voice,
    members
from majorities
