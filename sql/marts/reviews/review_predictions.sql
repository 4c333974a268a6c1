-- built as: view
-- depends on: staging.prediction_figures, prediction_measures
select
    figures.* exclude (figure_id, basis),
    measures.* exclude (figure_id, basis, method, created_at)
from staging.prediction_figures as figures
left join prediction_measures as measures
    on figures.figure_id = measures.figure_id
        -- Measures belong to the values that they were computed from.
        and figures.basis = measures.basis
