-- One row: a label that the annotators together give a task, of one kind.
--
-- A label counts if more than half of the annotators give it. If there is none,
-- the most frequent label counts; ties go by primary mentions, then by name.
--
-- built as: table
-- depends on: intermediate.annotator_labels
with annotators as (
    select benchmark, dataset_revision, task_id, kind, count(distinct annotator) as n_annotators
    from intermediate.annotator_labels
    group by all
),

counted as (
    select benchmark, dataset_revision, task_id, kind, label,
        count(*) as n_giving,
        exact_sum(n_primary / n_trials) as primary_share
    from intermediate.annotator_labels
    group by all
)

select benchmark, dataset_revision, task_id, kind, label, n_giving, n_annotators
from counted
inner join annotators using (benchmark, dataset_revision, task_id, kind)
qualify 2 * n_giving > n_annotators
    or (
        2 * max(n_giving) over (
            partition by benchmark, dataset_revision, task_id, kind
        ) <= n_annotators
        and row_number() over (
            partition by benchmark, dataset_revision, task_id, kind
            order by n_giving desc, primary_share desc, label
        ) = 1
    )
