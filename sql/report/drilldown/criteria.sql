-- The criteria of all admitted tasks, in the order of their rubrics.
-- begins with: labelled_criteria
select task_id, position, criterion_id, title, category, severity, weight, labels
from labelled_criteria
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
order by task_id, position
