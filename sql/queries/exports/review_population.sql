-- One row: a criterion that a sheet for reviewers can sample, task by task in
-- the order of the rubrics.
select
    criteria.task_id as task,
    criteria.criterion_id as criterion,
    criteria.content_hash as criterion_hash,
    criteria.title, criteria.category, criteria.severity, criteria.weight, tasks.field, tasks.topic
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
where criteria.benchmark = $benchmark
    and criteria.dataset_revision = $dataset_revision
    and list_contains($task_ids::varchar[], criteria.task_id)
order by list_position($task_ids::varchar[], criteria.task_id), criteria.position
