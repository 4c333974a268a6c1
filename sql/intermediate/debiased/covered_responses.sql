-- One row: a response in the population of a sheet with labels, with all its
-- verdicts or those of a category.
--
-- A sheet leaves out verdicts that already have a label, because they represent
-- themselves. If such a label is lost with a retracted import, nothing
-- represents its verdict, and the sheet covers no response.
--
-- built as: table
-- depends on: intermediate.filled_sheets, intermediate.imported_decisions, label_draws
with without_known as (
    select distinct sheets.sheet_id, sheets.steps
    from intermediate.filled_sheets as sheets
    inner join label_draws using (sheet_id)
    anti join (from intermediate.imported_decisions where is_label) as labelled
        using (response_id, criterion_id, criterion_hash, steps)
    where label_draws.is_known
)

select sheet_id, steps, labelled_share, density, covered_breakdown, covered_label,
    unnest(covered_responses) as response_id
from intermediate.filled_sheets
anti join without_known using (sheet_id, steps)
