-- One row: the latest hard selection of a field.
--
-- built as: view
-- depends on: hard_subset
select
    benchmark,
    dataset_revision,
    field,
    arg_max(selection_id, selected_at) as selection_id
from hard_subset
group by all
