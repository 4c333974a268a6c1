-- One row: a label that the annotators together give a task, of one kind.
--
-- A label counts if more than half of the annotators give it. If there is none,
-- the most frequent label counts; ties go by primary mentions, then by name.
--
-- built as: table
-- depends on: intermediate.annotator_labels
with mentions as (
    select *, count(distinct annotator) over task_labels as n_annotators
    from intermediate.annotator_labels
    window task_labels as (partition by benchmark, dataset_revision, task_id, kind)
)

select
    benchmark,
    dataset_revision,
    task_id,
    kind,
    label
from mentions
group by benchmark, dataset_revision, task_id, kind, label, n_annotators
window task_labels as (partition by benchmark, dataset_revision, task_id, kind)
qualify 2 * count(*) > n_annotators
    or (
        2 * max(count(*)) over task_labels <= n_annotators
        and row_number() over (
            task_labels order by count(*) desc, exact_sum(n_primary / n_trials) desc, label
        ) = 1
    )
