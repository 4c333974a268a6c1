-- built as: view
-- depends on: staging.review_figures, intervals
select figures.* exclude (figure_id, basis), intervals.ci_low, intervals.ci_high, intervals.is_small
from staging.review_figures as figures
left join intervals
    on figures.figure_id = intervals.figure_id
        -- An interval belongs to the values that it was drawn from.
        and figures.basis = intervals.basis
