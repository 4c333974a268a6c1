-- name: turns_to_assemble
-- One row: a user turn of a conversation that is not assembled yet.
--
-- with: revision/revision_conversation_turns
select turns.*
from revision_conversation_turns as turns
inner join tasks using (benchmark, dataset_revision, task_id)
anti join message_rows using (benchmark, dataset_revision, task_id, conversation_id)
where list_contains($tasks, task_id)
order by task_id, position;
