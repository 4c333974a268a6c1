-- name: hard_overlaps
-- Overlap of each field's hard selection with others: those without one model,
-- the official one, earlier ones.
with own as (
    select field, selection_id, task_id
    from revision_hard_subset
    where list_contains($selections::varchar[], selection_id)
),

others as (
    select field, selection_id, task_id, n_models,
        max(selected_at) over (partition by selection_id) as latest,
        count(*) over (partition by selection_id) as n_compared
    from revision_hard_subset
    anti join own using (selection_id)
),

earlier as (
    select field,
        'earlier' as kind,
        strftime(timezone('UTC', latest), '%Y-%m-%d %H:%M') || ' (' || n_models || ' models)'
            as compared_with,
        n_compared,
        count(own.task_id) as n_shared
    from others
    left join own using (field, task_id)
    group by others.selection_id, field, latest, n_models, n_compared
),

sizes as (
    select field, selection_id, count(*) as n_selected from own group by all
),

final as (
    select field, kind, compared_with, n_compared, n_shared
    from hard_overlaps
    semi join sizes using (selection_id)
    union all by name
    from earlier
)

select field, kind, compared_with, n_selected, n_compared, n_shared,
    n_shared / n_selected as shared_share,
    n_shared / (n_selected + n_compared - n_shared) as jaccard
from final
inner join sizes using (field)
order by field, kind <> 'official', kind <> 'earlier', shared_share, compared_with;

-- name: hard_selections
-- The current hard selection of each field: its size, stability, border, and
-- models.
with own as (
    select field, selection_id,
        any_value(panel) as panel,
        any_value(n_models) as n_models,
        max(selected_at) as selected_at,
        count(*) as n_selected,
        max(mean_score) as highest_inside
    from revision_hard_subset
    where list_contains($selections::varchar[], selection_id)
    group by field, selection_id
),

around as (
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

select field, n_selected, n_chosen_from, n_tasks, highest_inside, lowest_outside,
    lowest_outside - highest_inside as gap,
    n_border, n_border_inside, mean_inclusion, n_models, panel,
    timezone('UTC', selected_at) as selected_at,
    selection_id
from own
left join around using (selection_id)
left join admitted using (field)
order by field;

-- name: tasks
-- Every task that the hard selection of its field chose from, hardest first: in
-- or out, its distance from the border, and the share of resampled panels of
-- models that select it.
with selected as (
    select field, selection_id, task_id, rank, mean_score
    from revision_hard_subset
    where list_contains($selections::varchar[], selection_id)
),

stability as (
    from hard_stability
    semi join selected using (selection_id)
),

known as (
    -- A selection from before stability was measured has only its
    -- members.
    select field, selection_id, task_id,
        coalesce(selected.mean_score, stability.mean_score) as mean_score,
        selected.rank,
        selected.rank is not null as is_selected,
        count(selected.rank) over (partition by selection_id) as n_selected,
        inclusion_probability, is_border
    from selected
    full join stability using (field, selection_id, task_id)
),

ranked as (
    select
        known.* exclude (rank, n_selected),
        coalesce(
            known.rank,
            n_selected
            + row_number() over (
                partition by selection_id, is_selected
                -- Equal values may differ in the last digits; ties are
                -- ordered by task.
                order by round(mean_score, 12), task_id
            )
        ) as rank,
        (
            max(mean_score) filter (is_selected) over same
            + min(mean_score) filter (not is_selected) over same
        ) / 2 as border,
        task_id in (
            select task_id
            from revision_split_members
            where list_contains($hard_splits::varchar[], split)
        ) as is_member
    from known
    window same as (partition by selection_id)
)

select ranked.field, rank, task_id, topic, expert, turns, mean_score,
    mean_score - border as from_border,
    is_selected, inclusion_probability, is_border,
    -- NULL if no official hard split of the field is stored.
    if(bool_or(is_member) over (partition by ranked.field), is_member, null) as is_official
from ranked
inner join revision_tasks using (task_id)
order by ranked.field, rank;

-- name: hard_topics
-- Hard topics: the share of a topic's candidate tasks that the hard selection of
-- the field selects.
select known.field,
    coalesce(tasks.topic, '(none)') as topic,
    count(*) filter (known.is_selected) as n_selected,
    count(*) as n_chosen_from,
    n_selected / n_chosen_from as selected_share,
    avg(known.mean_score order by known.task_id) as mean_score
from revision_hard_stability as known
inner join tasks using (benchmark, dataset_revision, task_id)
where list_contains($selections::varchar[], known.selection_id)
group by known.field, coalesce(tasks.topic, '(none)')
order by known.field, selected_share desc, topic;
