-- What the hard selection of each field shares with others: those without one
-- model, the official one, earlier ones.
with own as (
    select field, selection_id, task_id
    from hard_subset
    where benchmark = $benchmark
        and dataset_revision = $revision
        and list_contains($selections::varchar[], selection_id)
),

others as (
    select hard_subset.field, hard_subset.selection_id, hard_subset.task_id,
        max(hard_subset.selected_at) over (partition by hard_subset.selection_id) as selected_at,
        count(*) over (partition by hard_subset.selection_id) as n_compared,
        hard_subset.n_models
    from hard_subset
    anti join own using (selection_id)
    where benchmark = $benchmark and dataset_revision = $revision
),

earlier as (
    select others.field,
        'earlier' as kind,
        strftime(timezone('UTC', others.selected_at), '%Y-%m-%d %H:%M')
        || ' (' || others.n_models || ' models)' as compared_with,
        others.n_compared,
        count(own.task_id) as n_shared
    from others
    left join own using (field, task_id)
    group by others.selection_id, others.field, others.selected_at,
        others.n_models, others.n_compared
),

sizes as (
    select field, selection_id, count(*) as n_selected from own group by all
),

stored as (
    select hard_overlaps.field, hard_overlaps.kind, hard_overlaps.compared_with,
        hard_overlaps.n_compared, hard_overlaps.n_shared
    from hard_overlaps
    semi join sizes using (selection_id)
),

final as (
    from stored
    union all by name
    from earlier
)

select final.field, final.kind, final.compared_with, sizes.n_selected, final.n_compared,
    final.n_shared,
    final.n_shared / sizes.n_selected as shared_share,
    final.n_shared / (sizes.n_selected + final.n_compared - final.n_shared) as jaccard
from final
inner join sizes using (field)
order by final.field, final.kind <> 'official', final.kind <> 'earlier',
    shared_share, final.compared_with
