-- The criteria of all admitted tasks, in the order of their rubrics.
with further as (
    select
        task_id,
        criterion_id,
        list({'kind': kind, 'label': label} order by kind, label) as labels
    from criterion_labels
    where benchmark = $benchmark and dataset_revision = $revision
    group by task_id, criterion_id
)

select
    criteria.task_id,
    criteria.position,
    criteria.criterion_id,
    criteria.title,
    criteria.category,
    criteria.severity,
    criteria.weight,
    coalesce(further.labels, []) as labels
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
left join further using (task_id, criterion_id)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and tasks.is_admitted
order by criteria.task_id, criteria.position
