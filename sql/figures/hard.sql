-- name: hard_overlaps
-- Overlap of each field's hard selection with others: those by the panel without one
-- of its models, the official hard split, and earlier selections.
--
-- with: revision/revision_hard_subset
with selected_tasks as (
    select field, selection_id, task_id, count(*) over (partition by selection_id) as n_selected
    from revision_hard_subset
    where list_contains($selections, selection_id)
),

earlier as (
    select others.field,
        'earlier' as kind,
        strftime(timezone('UTC', max(others.selected_at)), '%Y-%m-%d %H:%M')
        || ' (' || any_value(others.n_models) || ' models)' as compared_with,
        count(*) as n_compared,
        count(selected_tasks.task_id) as n_shared
    from revision_hard_subset as others
    left join selected_tasks using (field, task_id)
    where not list_contains($selections, others.selection_id)
    group by others.selection_id, others.field
)

select
    field,
    kind,
    compared_with,
    case kind when 'official' then '' when 'earlier' then 'selected ' else 'without ' end
    || compared_with as other,
    n_selected,
    n_compared,
    n_shared,
    n_shared / n_selected as shared_share,
    n_shared / (n_selected + n_compared - n_shared) as jaccard
from (
    select * exclude (n_selected) from hard_overlaps semi join selected_tasks using (selection_id)
    union all by name
    from earlier
)
inner join (select distinct field, n_selected from selected_tasks) as sizes using (field)
order by field, kind <> 'official', kind <> 'earlier', shared_share, compared_with;

-- name: hard_selections
-- The current hard selection of each field: its size, stability, border, and models.
--
-- with: revision/revision_hard_subset, revision/revision_tasks, figures/shared/shown_tasks
with current_selections as (
    select field, selection_id,
        any_value(panel) as panel,
        any_value(n_models) as n_models,
        max(selected_at) as selected_at,
        count(*) as n_selected,
        max(mean_score) as highest_inside
    from revision_hard_subset
    where list_contains($selections, selection_id)
    group by field, selection_id
),

stability as (
    select selection_id,
        count(*) as n_chosen_from,
        min(mean_score) filter (not is_selected) as lowest_outside,
        count(*) filter (is_border) as n_border,
        count(*) filter (is_border and is_selected) as n_border_inside,
        avg(inclusion_probability order by task_id) filter (is_selected) as mean_inclusion
    from hard_stability
    group by selection_id
),

admitted as (
    select field, count(*) as n_tasks
    from revision_tasks
    semi join shown_tasks using (task_id)
    where is_admitted
    group by field
)

select
    field,
    n_selected,
    n_chosen_from,
    n_tasks,
    highest_inside,
    lowest_outside,
    lowest_outside - highest_inside as gap,
    n_border,
    n_border_inside,
    mean_inclusion,
    n_models,
    panel,
    timezone('UTC', selected_at) as selected_at,
    selection_id
from current_selections
left join stability using (selection_id)
left join admitted using (field)
order by field;

-- name: tasks
-- Every task that the hard selection of its field chose from, hardest first: in
-- or out, its distance from the border, and the share of resampled panels of
-- models that select it.
--
-- with: revision/revision_hard_stability, revision/revision_split_members
with ranked as (
    select *,
        -- Equal values may differ in the last digits; ties are ordered by task.
        row_number() over (
            partition by selection_id order by not is_selected, round(mean_score, 12), task_id
        ) as rank,
        (
            max(mean_score) filter (is_selected) over same
            + min(mean_score) filter (not is_selected) over same
        ) / 2 as border,
        task_id in (
            select task_id
            from revision_split_members
            where list_contains($hard_splits, split)
        ) as is_member
    from revision_hard_stability
    where list_contains($selections, selection_id)
    window same as (partition by selection_id)
)

select
    ranked.field,
    rank,
    task_id,
    topic,
    expert,
    turns,
    mean_score,
    mean_score - border as from_border,
    is_selected,
    if(is_selected, 'inside', 'outside') as side,
    inclusion_probability,
    is_border,
    -- NULL if no official hard split of the field is stored.
    if(bool_or(is_member) over (partition by ranked.field), is_member, null) as is_official
from ranked
inner join tasks using (task_id)
where tasks.benchmark = $benchmark and tasks.dataset_revision = $dataset_revision
order by ranked.field, rank;

-- name: hard_topics
-- Hard topics: the share of a topic's candidate tasks that the hard selection of
-- the field selects.
--
-- with: revision/revision_hard_stability
select
    stability.field,
    coalesce(tasks.topic, '(none)') as topic,
    count(*) filter (stability.is_selected) as n_selected,
    count(*) as n_chosen_from,
    n_selected / n_chosen_from as selected_share,
    avg(stability.mean_score order by stability.task_id) as mean_score
from revision_hard_stability as stability
inner join tasks using (benchmark, dataset_revision, task_id)
where list_contains($selections, stability.selection_id)
group by stability.field, coalesce(tasks.topic, '(none)')
order by stability.field, selected_share desc, topic;
