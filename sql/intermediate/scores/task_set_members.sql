-- One row: an admitted task of a task set. The task sets of leaderboards are the
-- data set's splits, and the latest own hard selection of each field.
--
-- built as: table
-- depends on: intermediate.latest_selections, hard_subset, split_members, tasks
with members as (
    select benchmark, dataset_revision, split, task_id, false as is_own_hard
    from split_members
    union all by name
    select benchmark, dataset_revision,
        field || ' (own hard)' as split,
        task_id,
        true as is_own_hard
    from hard_subset
    inner join intermediate.latest_selections
        using (benchmark, dataset_revision, field, selection_id)
)

select
    hash(members.benchmark, members.dataset_revision, split, is_own_hard) as task_set_id,
    members.benchmark,
    members.dataset_revision,
    members.split,
    members.is_own_hard,
    members.task_id,
    tasks.n_criteria,
    -- The index of the task in its set, from 0.
    row_number() over (partition by task_set_id order by members.task_id) - 1 as task,
    count(*) over (partition by task_set_id) as n_tasks_of_set
from members
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
