-- One row: a criterion by its key in checks, with its task.
select
    task_id || '/' || criterion_id as key,
    task_id
from criteria
where benchmark = $benchmark and dataset_revision = $dataset_revision
