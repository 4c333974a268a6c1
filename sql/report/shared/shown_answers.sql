-- One row: an answer of a model that is shown; `is_older` where it was given to
-- the task's conversation before that was changed.
-- begins with: entries
select entries.entry,
    coalesce(responses.conversation_id <> tasks.conversation_id, false) as is_older,
    responses.*
from responses
inner join entries using (model, model_config_hash, vintage)
left join tasks
    on responses.benchmark = tasks.benchmark
        and responses.dataset_revision = tasks.dataset_revision
        and responses.task_id = tasks.task_id
where responses.benchmark = $benchmark and responses.dataset_revision = $revision
