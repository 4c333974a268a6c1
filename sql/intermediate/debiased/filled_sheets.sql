-- One row: a sheet with labels, binary or ternary, with the number of its
-- labelled verdicts.
--
-- A sheet without any label has no row. Several sheets are weighted by the
-- labelled share of their population.
--
-- built as: table
-- depends on: intermediate.imported_decisions, label_draws, label_sheets
with counted as (
    select sheet_id, steps,
        count(distinct row(response_id, criterion_id, criterion_hash)) as n_labelled
    from label_draws
    inner join intermediate.imported_decisions using (response_id, criterion_id, criterion_hash)
    where is_label and not is_known
    group by all
)

select label_sheets.*, counted.steps, counted.n_labelled,
    counted.n_labelled / label_sheets.n_drawn as labelled_share,
    counted.n_labelled / label_sheets.n_population as density
from label_sheets
inner join counted using (sheet_id)
