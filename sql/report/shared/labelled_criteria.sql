-- One row: a criterion, with its labels of the kinds that only some benchmarks
-- have.
with further as (
    select task_id, criterion_id,
        list({'kind': kind, 'label': label} order by kind, label) as labels
    from criterion_labels
    where benchmark = $benchmark and dataset_revision = $revision
    group by task_id, criterion_id
)

select criteria.*, coalesce(further.labels, []) as labels
from criteria
left join further
    on criteria.task_id = further.task_id and criteria.criterion_id = further.criterion_id
where criteria.benchmark = $benchmark and criteria.dataset_revision = $revision
