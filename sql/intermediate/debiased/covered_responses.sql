-- One row: a response in the population of a sheet with labels, with all its
-- verdicts or those of a category.
--
-- A sheet leaves out verdicts that already have a label, because they represent
-- themselves. If such a label is lost with a retracted import, nothing
-- represents its verdict, and the sheet covers no response.
--
-- A sheet without any label covers no response either. Several sheets are
-- weighted by the labelled share of their population.
--
-- built as: table
-- needs: intermediate.imported_decisions
-- depends on: intermediate.imported_decisions, label_draws, label_sheets
with labelled_sheets as (
    select sheet_id, steps,
        count(distinct row(response_id, criterion_id, criterion_hash)) as n_labelled
    from label_draws
    inner join intermediate.imported_decisions using (response_id, criterion_id, criterion_hash)
    where is_label and not is_known
    group by all
),

without_known as (
    select distinct labelled_sheets.sheet_id, labelled_sheets.steps
    from labelled_sheets
    inner join label_draws using (sheet_id)
    anti join (from intermediate.imported_decisions where is_label) as labelled
        using (response_id, criterion_id, criterion_hash, steps)
    where label_draws.is_known
)

select
    sheet_id,
    steps,
    covered_breakdown,
    covered_label,
    n_labelled / n_drawn as labelled_share,
    n_labelled / n_population as density,
    unnest(covered_responses) as response_id
from label_sheets
inner join labelled_sheets using (sheet_id)
anti join without_known using (sheet_id, steps)
