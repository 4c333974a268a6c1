-- One row: a task with its field.
select task_id, field
from tasks
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], task_id)
