-- How many tasks of each split stand under each label, refused tasks too. A
-- task with several labels counts under each, so shares can add up to more than
-- all.
-- begins with: shown_splits
with own as (
    select task_id, list(label order by label) as labels
    from labelled_tasks
    where benchmark = $benchmark and dataset_revision = $revision and kind = $breakdown
    group by task_id
),

members as (
    select split_members.split, tasks.task_id,
        case $breakdown
            when 'topic' then [tasks.topic]
            when 'expert' then [tasks.expert]
            when 'turns' then [tasks.turns::varchar]
            when 'n_criteria' then [tasks.n_criteria::varchar]
            when 'decision_type' then tasks.decision_types
            when 'economic_pathway' then tasks.economic_pathways
            else own.labels
        end as labels,
        count(*) over (partition by split_members.split) as n_tasks_split
    from split_members
    inner join shown_splits using (split)
    inner join tasks using (benchmark, dataset_revision, task_id)
    left join own using (task_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
),

labelled as (
    select split, n_tasks_split, task_id, unnest(if(len(labels) > 0, labels, ['(none)'])) as label
    from members
),

counted as (
    select split,
        coalesce(label, '(none)') as label,
        count(distinct task_id) as n_tasks,
        count(distinct task_id) / any_value(n_tasks_split) as share
    from labelled
    group by all
)

select split, is_hard, label, n_tasks, share
from counted
inner join shown_splits using (split)
order by is_hard, split, try_cast(label as integer) nulls last, n_tasks desc, label
