-- name: labels_by_source
-- One row: the labels of one kind that a source gives a task, the data set
-- (`released`) or an annotator.
with released as (
    select benchmark, dataset_revision, task_id, kind, label
    from labelled_tasks
    where source = 'released'
),

sources as (
    select *, 'released' as source
    from released
    union all by name
    select benchmark, dataset_revision, task_id, kind, label, annotator as source
    from intermediate.annotator_labels
)

select benchmark, dataset_revision, kind, source, task_id, list(label order by label) as labels
from sources
where kind in (select kind from intermediate.annotator_labels)
group by all
order by benchmark, dataset_revision, kind, source, task_id;

-- name: settled_items
-- One row: an item of an analysis that is not asked about again.
select {key} as row_id
from {table}
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and (status = 'ok' or not ($retry_failed::boolean or list_contains($again::varchar[], status)));
