-- The members of a control set that have no verdict in a night yet, or a failed
-- one whose cause may pass, with all that a judge reads; `stored_status` is
-- that of the failure. What is gone is NULL.
with tonight as (
    select response_id, criterion_id, criterion_hash, status
    from control_verdicts
    where set_id = $set_id and judge_vintage = $night
)

select control_set.*, responses.text, criteria.title, criteria.position, criteria.weight,
    criteria.category,
    tasks.task_id is not null as is_asked_alike,
    tonight.status as stored_status
from control_set
left join responses on control_set.response_id = responses.response_id and responses.status = 'ok'
left join criteria
    on control_set.benchmark = criteria.benchmark
        and control_set.dataset_revision = criteria.dataset_revision
        and control_set.task_id = criteria.task_id
        and control_set.criterion_id = criteria.criterion_id
        and control_set.criterion_hash = criteria.content_hash
left join tasks
    on control_set.benchmark = tasks.benchmark
        and control_set.dataset_revision = tasks.dataset_revision
        and control_set.task_id = tasks.task_id
        and control_set.conversation_id = tasks.conversation_id
        and tasks.is_admitted
left join tonight
    on control_set.response_id = tonight.response_id
        and control_set.criterion_id = tonight.criterion_id
        and control_set.criterion_hash = tonight.criterion_hash
where control_set.set_id = $set_id
    and (tonight.status is null or list_contains($again::varchar[], tonight.status))
order by control_set.task_id, control_set.response_id, criteria.position, control_set.criterion_id
