-- One row: the assembled conversation of a task.
select task_id, conversation_id,
    list(role order by position) as roles,
    list(content order by position) as texts
from messages
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], task_id)
group by task_id, conversation_id
