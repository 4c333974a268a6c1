-- One row: a label of a task, with its source: the data set, or annotators
-- if the data set gives the task no label of that kind.
--
-- built as: table
-- depends on: intermediate.annotated_labels, task_labels, task_rows
with released as (
    select benchmark, dataset_revision, task_id,
        'decision_type' as kind,
        unnest(decision_types) as label
    from task_rows
    union all
    select benchmark, dataset_revision, task_id, 'economic_pathway', unnest(economic_pathways)
    from task_rows
    union all
    select benchmark, dataset_revision, task_id, kind, label
    from task_labels
)

select
    benchmark,
    dataset_revision,
    task_id,
    kind,
    label,
    'released' as source
from released
union all by name
select
    benchmark,
    dataset_revision,
    task_id,
    kind,
    label,
    'annotated' as source
from intermediate.annotated_labels
anti join released using (benchmark, dataset_revision, task_id, kind)
