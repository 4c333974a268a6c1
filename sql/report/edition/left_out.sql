-- How many tasks of the revision the report is not of.
-- begins with: shown_tasks
select count(distinct task_id) as n_tasks
from split_members
anti join shown_tasks using (task_id)
where benchmark = $benchmark and dataset_revision = $revision
