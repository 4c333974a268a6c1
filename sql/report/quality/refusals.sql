-- The tasks that the latest check refused, and why; they take no part in any
-- score.
-- begins with: shown_tasks
select quarantine.check_name, quarantine.task_id,
    array_to_string(tasks.splits, ', ') as splits,
    quarantine.severity as policy,
    quarantine.detail
from quarantine
left join tasks using (benchmark, dataset_revision, task_id)
semi join shown_tasks on quarantine.task_id = shown_tasks.task_id
where benchmark = $benchmark and dataset_revision = $revision
order by check_name, task_id
