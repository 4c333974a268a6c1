-- How many criteria of each split have each category or severity, those of refused tasks too; severities in their order.
with members as (
    select
        split_members.split,
        coalesce(
            case $cut
                when 'category' then criteria.category
                when 'severity' then criteria.severity
            end,
            '(none)'
        ) as label
    from split_members
    inner join criteria using (benchmark, dataset_revision, task_id)
    where
        split_members.benchmark = $benchmark
        and split_members.dataset_revision = $revision
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split_members.split))
),

ranked as (
    select severity as label, max_weight
    from severities
    where benchmark = $benchmark and $cut = 'severity'
),

counted as (
    select split, label, count(*) as n_criteria
    from members
    group by all
)

select
    split,
    list_contains($hard_splits::varchar[], split) as is_hard,
    label,
    n_criteria,
    n_criteria / sum(n_criteria) over (partition by split) as share
from counted
left join ranked using (label)
order by is_hard, split, max_weight desc nulls last, n_criteria desc, label
