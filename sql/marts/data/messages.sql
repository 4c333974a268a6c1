-- Only of admitted tasks: a task that was refused later is left out of everything.
--
-- built as: table
-- depends on: message_rows, tasks
select
    benchmark,
    dataset_revision,
    task_id,
    message_rows.conversation_id,
    position,
    role,
    content
from message_rows
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
