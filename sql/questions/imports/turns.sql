-- One row: a user turn of a task of a data set, refused ones too.
select
    task_id,
    prompt,
    reference_texts,
    response
from conversation_turns
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by task_id, position
