-- One row: a sheet with labels, binary or ternary, with the number of its
-- labelled verdicts.
--
-- A sheet without any label has no row. Several sheets are weighted by the
-- labelled share of their population.
--
-- built as: table
-- depends on: intermediate.imported_decisions, label_draws, label_sheets
with labelled as (
    select distinct response_id, criterion_id, criterion_hash, steps
    from intermediate.imported_decisions
    where is_label
),

counted as (
    select label_draws.sheet_id, labelled.steps, count(*) as n_labelled
    from label_draws
    inner join labelled using (response_id, criterion_id, criterion_hash)
    where not label_draws.is_known
    group by all
)

select label_sheets.*, counted.steps, counted.n_labelled,
    counted.n_labelled / label_sheets.n_drawn as labelled_share,
    counted.n_labelled / label_sheets.n_population as density
from label_sheets
inner join counted using (sheet_id)
