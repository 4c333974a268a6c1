-- name: criterion_counts
-- How many criteria of each split stand under each label of a kind, those of
-- refused tasks too; severities in their order. A criterion with several labels
-- counts under each, so shares can add up to more than all.
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
order by is_hard, split, max_weight desc nulls last, n_criteria desc, label;

-- name: splits
-- The size of each split as ingested, refused tasks too. Quartiles are
-- interpolated.
with refused as (
    select distinct benchmark, dataset_revision, task_id
    from quarantine
),

members as (
    select split_members.split, tasks.expert, tasks.turns, tasks.has_reference_texts,
        tasks.n_criteria, tasks.negative_weight,
        refused.task_id is not null as is_refused
    from split_members
    inner join shown_splits using (split)
    inner join tasks using (benchmark, dataset_revision, task_id)
    left join refused using (benchmark, dataset_revision, task_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
)

select split,
    count(*) as n_tasks,
    count(*) filter (is_refused) as n_refused,
    avg((expert = 'Expert')::integer) as expert_share,
    min(n_criteria) as criteria_min,
    quantile_cont(n_criteria, 0.25) as criteria_25,
    quantile_cont(n_criteria, 0.5) as criteria_50,
    quantile_cont(n_criteria, 0.75) as criteria_75,
    max(n_criteria) as criteria_max,
    sum(n_criteria) as n_criteria,
    avg((negative_weight < 0)::integer) as with_negative_share,
    min(turns) as turns_min,
    quantile_cont(turns, 0.25) as turns_25,
    quantile_cont(turns, 0.5) as turns_50,
    quantile_cont(turns, 0.75) as turns_75,
    max(turns) as turns_max,
    avg((turns > 1)::integer) as multi_turn_share,
    count(*) filter (has_reference_texts) as n_with_references
from members
inner join shown_splits using (split)
group by split, is_hard
order by is_hard, split;

-- name: task_counts
-- How many tasks of each split stand under each label, refused tasks too. A
-- task with several labels counts under each, so shares can add up to more than
-- all.
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
order by is_hard, split, try_cast(label as integer) nulls last, n_tasks desc, label;

-- name: weights
-- How many criteria of each split have each weight, those of refused tasks too;
-- NULL is a weight that is no number.
with counted as (
    select split_members.split, criteria.weight, count(*) as n_criteria
    from split_members
    inner join shown_splits using (split)
    inner join criteria using (benchmark, dataset_revision, task_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
    group by all
)

select split, is_hard, weight, n_criteria,
    n_criteria / sum(n_criteria) over (partition by split) as share
from counted
inner join shown_splits using (split)
order by is_hard, split, weight nulls last;
