-- The hard selection of each field that counts: how large, how sure, where its
-- border is, and which models chose it.
-- begins with: shown_tasks
with own as (
    select field, selection_id,
        any_value(panel) as panel,
        any_value(n_models) as n_models,
        max(selected_at) as selected_at,
        count(*) as n_selected,
        max(mean_score) as highest_inside
    from hard_subset
    where benchmark = $benchmark
        and dataset_revision = $revision
        and list_contains($selections::varchar[], selection_id)
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
    from tasks
    semi join shown_tasks using (task_id)
    where benchmark = $benchmark and dataset_revision = $revision and is_admitted
    group by field
)

select own.field, own.n_selected, around.n_chosen_from, admitted.n_tasks, own.highest_inside,
    around.lowest_outside,
    around.lowest_outside - own.highest_inside as gap,
    around.n_border, around.n_border_inside, around.mean_inclusion, own.n_models, own.panel,
    timezone('UTC', own.selected_at) as selected_at,
    own.selection_id
from own
left join around using (selection_id)
left join admitted using (field)
order by own.field
