-- One row: a label of a task (not of its criteria); a task with several labels
-- of a kind has a row for each.
--
-- built as: table
-- depends on: intermediate.task_set_members, labelled_tasks, tasks
with labelled as (
    select benchmark, dataset_revision, task_id, breakdown, label,
        false as is_annotated
    from tasks
    cross join (
        values
        ('all', ''),
        ('topic', topic),
        ('expert', expert),
        ('turns', turns::varchar),
        ('reference_texts', if(has_reference_texts, 'with', 'without')),
        ('subset', 'full')
    ) as labels (breakdown, label)
    union all
    select benchmark, dataset_revision, task_id, kind, label, source = 'annotated'
    from labelled_tasks
    union all
    select benchmark, dataset_revision, task_id, 'subset', 'hard', false
    from intermediate.task_set_members
    where is_own_hard
)

select distinct
    benchmark,
    dataset_revision,
    task_id,
    breakdown,
    coalesce(label, '(none)') as label,
    is_annotated
from labelled
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
