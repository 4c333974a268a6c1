-- One row: a task that the report is of.
-- begins with: shown_splits
select distinct task_id
from split_members
inner join shown_splits using (split)
where benchmark = $benchmark and dataset_revision = $revision
