-- One row: a label that at least one of two annotators gives a task that both
-- labelled, or an annotator and the data set (`released`).
--
-- built as: table
-- depends on: intermediate.annotator_labels, labelled_tasks
with sources as (
    select benchmark, dataset_revision, kind, task_id, label, annotator as source
    from intermediate.annotator_labels
    union all by name
    select benchmark, dataset_revision, kind, task_id, label, source
    from labelled_tasks
    where source = 'released'
),

compared as (
    select distinct benchmark, dataset_revision, kind, task_id,
        annotators.source as annotator,
        others.source as compared_with
    from sources as annotators
    inner join sources as others using (benchmark, dataset_revision, kind, task_id)
    where annotators.source <> 'released'
        and (others.source = 'released' or annotators.source < others.source)
)

select
    benchmark,
    dataset_revision,
    kind,
    task_id,
    annotator,
    compared_with,
    sources.label,
    hash(benchmark, dataset_revision, kind, annotator, compared_with) as comparison_id,
    bool_or(source = annotator) as is_annotated,
    bool_or(source = compared_with) as is_compared
from compared
inner join sources using (benchmark, dataset_revision, kind, task_id)
where source in (annotator, compared_with)
group by all
