-- name: label_counts
-- Number of tasks or criteria of each split by label, including refused tasks;
-- numbers and severities are in their order. A task or criterion with several
-- labels counts under each, so the shares can add up to more than 100 %.
--
-- with: revision/revision_split_members
with named_labels as (
    select task_id, criterion_id, list(label order by label) as labels
    from (from labelled_tasks union all by name from criterion_labels)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and kind = $breakdown
    group by task_id, criterion_id
),

members as (
    select split_members.split, tasks.task_id,
        null as criterion_id,
        case $breakdown
            when 'topic' then [tasks.topic]
            when 'expert' then [tasks.expert]
            when 'turns' then [tasks.turns::varchar]
            when 'n_criteria' then [tasks.n_criteria::varchar]
            when 'decision_type' then tasks.decision_types
            when 'economic_pathway' then tasks.economic_pathways
            else named_labels.labels
        end as labels
    from revision_split_members as split_members
    inner join tasks using (benchmark, dataset_revision, task_id)
    left join named_labels
        on tasks.task_id = named_labels.task_id and named_labels.criterion_id is null
    where not $of_criteria
    union all
    select split_members.split, criteria.task_id, criteria.criterion_id,
        case $breakdown
            when 'category' then [criteria.category]
            when 'severity' then [criteria.severity]
            when 'weight' then [format('{:g}', criteria.weight)]
            else named_labels.labels
        end as labels
    from revision_split_members as split_members
    inner join criteria using (benchmark, dataset_revision, task_id)
    left join named_labels using (task_id, criterion_id)
    where $of_criteria
),

labelled as (
    select split,
        (task_id, criterion_id) as member,
        count(*) over (partition by split) as n_of_split,
        unnest(if(len(labels) > 0, labels, ['(none)'])) as label
    from members
),

counted as (
    select split, is_hard,
        coalesce(label, '(none)') as label,
        count(distinct member) as n,
        n / any_value(n_of_split) as share
    from labelled
    inner join $shown_splits using (split)
    group by all
)

select
    counted.split,
    counted.is_hard,
    counted.label,
    if($of_criteria, null, n) as n_tasks,
    if($of_criteria, n, null) as n_criteria,
    counted.share
from counted
left join severities
    on severities.benchmark = $benchmark
        and $breakdown = 'severity'
        and counted.label = severities.severity
order by is_hard, split, max_weight desc nulls last, try_cast(label as double) nulls last, n desc,
    label;

-- name: splits
-- The size of each split as ingested, including refused tasks. Quartiles are
-- interpolated.
--
-- with: revision/revision_split_members
with members as (
    select *,
        (benchmark, dataset_revision, task_id) in (
            select (benchmark, dataset_revision, task_id) from quarantine
        ) as is_refused
    from revision_split_members
    inner join $shown_splits using (split)
    inner join tasks using (benchmark, dataset_revision, task_id)
)

select
    split,
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
group by split, is_hard
order by is_hard, split;
