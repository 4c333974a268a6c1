-- How many criteria of each split stand under each label of a kind, those of
-- refused tasks too; severities in their order. A criterion with several labels
-- counts under each, so shares can add up to more than all.
-- begins with: shown_splits
with own as (
    select task_id, criterion_id, list(label order by label) as labels
    from criterion_labels
    where benchmark = $benchmark and dataset_revision = $revision and kind = $breakdown
    group by task_id, criterion_id
),

members as (
    select split_members.split,
        case $breakdown
            when 'category' then [criteria.category]
            when 'severity' then [criteria.severity]
            else own.labels
        end as labels,
        count(*) over (partition by split_members.split) as n_criteria_split
    from split_members
    inner join shown_splits using (split)
    inner join criteria using (benchmark, dataset_revision, task_id)
    left join own using (task_id, criterion_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
),

labelled as (
    select split, n_criteria_split, unnest(if(len(labels) > 0, labels, ['(none)'])) as label
    from members
),

ranked as (
    select severity as label, max_weight
    from severities
    where benchmark = $benchmark and $breakdown = 'severity'
),

counted as (
    select split,
        coalesce(label, '(none)') as label,
        count(*) as n_criteria,
        count(*) / any_value(n_criteria_split) as share
    from labelled
    group by all
)

select split, is_hard, label, n_criteria, share
from counted
inner join shown_splits using (split)
left join ranked using (label)
order by is_hard, split, max_weight desc nulls last, n_criteria desc, label
