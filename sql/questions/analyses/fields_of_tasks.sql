-- One row: a task of a revision, with its field.
select task_id, field
from tasks
where benchmark = $benchmark and dataset_revision = $dataset_revision
