-- One row: how often a set of graders decided what on a criterion of a
-- response.
--
-- How often a set of graders decided what on a criterion of a response that at
-- least two of them decided. Sets are all graders, each in its first
-- repetition, and the repetitions of each judge.
--
-- depends on: temp.graded, graders
with sets as (
    select 'all graders' as grader_set, grader_id, benchmark
    from graders
    where has_voice
    union all
    select configured || ' (trials)' as grader_set, grader_id, benchmark
    from graders
    where kind <> 'majority'
        and (benchmark, configured) in (
            select (benchmark, configured) from graders where judge_trial > 1
        )
)

select sets.grader_set, graded.benchmark, graded.dataset_revision, graded.task_id,
    graded.response_id, graded.criterion_id,
    count(*) as n_values,
    count(*) filter (where value = 0) as n_unmet,
    count(*) filter (where value = 0.5) as n_partial,
    count(*) filter (where value = 1) as n_met
from temp.graded
inner join sets using (grader_id, benchmark)
group by all
having count(*) > 1
