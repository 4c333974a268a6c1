-- One row: a criterion of an admitted task under one of its labels.
--
-- The labels are the whole rubric (breakdown `all`), the category, the severity,
-- and each further label. Keys are hashes, because joining and grouping millions
-- of verdicts by several texts takes twice as long.
--
-- depends on: criteria, criterion_labels, tasks
with admitted as (
    select criteria.*
    from criteria
    inner join tasks using (benchmark, dataset_revision, task_id)
    where tasks.is_admitted
),

labelled as (
    select *,
        unnest(['all', 'category', 'severity']) as breakdown,
        unnest(['', coalesce(category, '(none)'), coalesce(severity, '(none)')]) as label
    from admitted
    union all
    select admitted.*, kind as breakdown, criterion_labels.label
    from admitted
    inner join criterion_labels using (benchmark, dataset_revision, task_id, criterion_id)
)

select
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    breakdown,
    label,
    weight,
    hash(benchmark, dataset_revision, task_id, criterion_id, content_hash) as criterion_key,
    hash(benchmark, dataset_revision, task_id, breakdown, label) as label_key
from labelled
