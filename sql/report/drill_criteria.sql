-- The criteria of all admitted tasks, in the order of their rubrics.
select
    criteria.task_id,
    criteria.position,
    criteria.criterion_id,
    criteria.title,
    criteria.category,
    criteria.severity,
    criteria.weight
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and tasks.is_admitted
order by criteria.task_id, criteria.position
