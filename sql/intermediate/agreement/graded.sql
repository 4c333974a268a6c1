-- One row: a grader's decision on a criterion of a response that several
-- graders decided; a majority is also a grader.
--
-- depends on: intermediate.current_verdicts, temp.compared_responses, graders
with decided as (
    select response_id, benchmark, dataset_revision, task_id, criterion_id,
        judging_id as grader_id,
        value, probability
    from intermediate.current_verdicts
    semi join temp.compared_responses using (response_id)
    where value is not null
)

select
    response_id,
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    grader_id,
    value,
    probability
from decided
union all by name
select
    response_id,
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    majorities.grader_id,
    value,
    null as probability
from decided
inner join graders using (grader_id, benchmark)
inner join graders as majorities using (benchmark)
where majorities.kind = 'majority'
    and list_contains(majorities.revision_ids, hash(benchmark, dataset_revision))
    and list_contains(majorities.members, graders.voice)
    and (graders.grading = 'ternary') = (majorities.grading = 'ternary')
group by all
-- More than half of all members, not of those who decided: a missing verdict
-- is not a vote.
having 2 * count(*) > any_value(len(majorities.members))
