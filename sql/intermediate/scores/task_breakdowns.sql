-- One row: a label of a task (not of its criteria); a task with several labels
-- of a kind has a row for each.
--
-- built as: table
-- depends on: intermediate.task_set_members, labelled_tasks, tasks
with latest_hard as (
    select task_set_members.benchmark, task_set_members.dataset_revision, task_set_members.task_id
    from intermediate.task_set_members
    where task_set_members.is_own_hard
),

labelled as (
    select *, 'all' as breakdown, '' as label from tasks
    union all by name
    select *, 'topic' as breakdown, topic as label from tasks
    union all by name
    select *, 'expert' as breakdown, expert as label from tasks
    union all by name
    select *, 'turns' as breakdown, turns::varchar as label from tasks
    union all by name
    select tasks.*,
        labelled_tasks.kind as breakdown,
        labelled_tasks.label,
        labelled_tasks.source = 'annotated' as is_annotated
    from tasks
    inner join labelled_tasks using (benchmark, dataset_revision, task_id)
    union all by name
    select *, 'reference_texts' as breakdown, if(has_reference_texts, 'with', 'without') as label
    from tasks
    union all by name
    select *, 'subset' as breakdown, 'full' as label from tasks
    union all by name
    select tasks.*, 'subset' as breakdown, 'hard' as label
    from tasks
    semi join latest_hard using (benchmark, dataset_revision, task_id)
)

select distinct benchmark, dataset_revision, task_id, breakdown,
    coalesce(label, '(none)') as label,
    coalesce(is_annotated, false) as is_annotated
from labelled
where is_admitted
