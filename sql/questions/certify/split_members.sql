-- One row: a task's place in a split.
select split, task_id, position
from split_members
where benchmark = $benchmark and dataset_revision = $revision
order by split, position, task_id
