-- One row: a response whose verdicts a sheet with labels was drawn from, all of
-- them or those of a category.
--
-- built as: table
-- depends on: staging.filled_sheets
select
    sheet_id,
    steps,
    labelled_share,
    density,
    covered_breakdown,
    covered_label,
    unnest(covered_responses) as response_id
from staging.filled_sheets
