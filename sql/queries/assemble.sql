-- name: turns_to_assemble
-- One row: a user turn of a conversation that is not assembled yet.
select turns.*
from conversation_turns as turns
inner join tasks using (benchmark, dataset_revision, task_id)
anti join message_rows using (benchmark, dataset_revision, task_id, conversation_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], task_id)
order by task_id, position;
