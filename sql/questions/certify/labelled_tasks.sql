-- One row: a label of a task that is not one of its own columns.
select task_id, kind, label, source
from labelled_tasks
where benchmark = $benchmark and dataset_revision = $revision
order by all
