-- One row: a kind of label that annotators gave tasks to which the data set
-- gives none, with how many tasks have a label of that kind.
with given as (
    select kind,
        count(distinct task_id) filter (source = 'annotated') as n_annotated,
        count(distinct task_id) as n_tasks
    from labelled_tasks
    where benchmark = $benchmark and dataset_revision = $revision
    group by kind
),

annotators as (
    select kind, list(distinct annotator order by annotator) as annotators
    from staging.annotator_labels
    where benchmark = $benchmark and dataset_revision = $revision
    group by kind
)

select kind, n_annotated, n_tasks, annotators
from given
inner join annotators using (kind)
where n_annotated > 0
