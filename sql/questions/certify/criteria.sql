-- One row: a criterion, without its words.
select
    task_id,
    position,
    criterion_id,
    category,
    weight,
    severity,
    content_hash
from criteria
where benchmark = $benchmark and dataset_revision = $revision
order by task_id, position
