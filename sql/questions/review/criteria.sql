-- One row: a criterion of some tasks, task by task in the order of the rubrics.
select
    task_id,
    criterion_id,
    content_hash as criterion_hash,
    title,
    weight
from criteria
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($task_ids::varchar[], task_id)
order by list_position($task_ids::varchar[], task_id), position
