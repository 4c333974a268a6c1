-- One row: a task, with the labels that leaderboards are broken down by, and
-- whether it was admitted; none of its texts.
select
    task_id,
    field,
    topic,
    expert,
    turns,
    has_reference_texts,
    n_criteria,
    is_admitted,
    conversation_id,
    content_hash
from tasks
where benchmark = $benchmark and dataset_revision = $revision
order by task_id
