-- Every decision on a criterion that several graders looked at, those of majorities among them.
with several as (
    select response_id
    from decided_parts
    where cut = 'all'
    group by response_id
    having count(*) > 1
),

decided as (
    select
        verdicts.response_id,
        verdicts.benchmark,
        verdicts.dataset_revision,
        verdicts.task_id,
        verdicts.criterion_id,
        hash(judge, judge_config_hash, template_hash, grading, judge_trial)
            as grader_id,
        verdicts.value
    from verdicts
    inner join criteria
        on
            verdicts.benchmark = criteria.benchmark
            and verdicts.dataset_revision = criteria.dataset_revision
            and verdicts.task_id = criteria.task_id
            and verdicts.criterion_id = criteria.criterion_id
            and verdicts.criterion_hash = criteria.content_hash
    semi join several on verdicts.response_id = several.response_id
    where verdicts.value is not null
),

votes as (
    select
        decided.* exclude (grader_id),
        panels.grader_id,
        len(panels.members) as n_members,
        count(*) as n_votes
    from decided
    inner join graders using (grader_id)
    inner join graders as panels
        on
            panels.kind = 'majority'
            and list_contains(
                panels.revision_ids,
                hash(decided.benchmark, decided.dataset_revision)
            )
            and list_contains(panels.members, graders.grader)
    group by all
),

final as (
    select * from decided
    union all by name
    -- More than half of all members, not of those who decided: what is missing is no vote.
    select * exclude (n_members, n_votes)
    from votes
    where 2 * n_votes > n_members
)

select final.*
from final
semi join tasks
    on
        final.benchmark = tasks.benchmark
        and final.dataset_revision = tasks.dataset_revision
        and final.task_id = tasks.task_id
        and tasks.is_admitted
