-- built as: view
-- depends on: intermediate.measured, intermediate.review_figures
select
    benchmark,
    dataset_revision,
    population_id,
    breakdown,
    label,
    n_population,
    figures.agreeing_share,
    unweighted_share,
    n_criteria,
    n_reviews,
    n_tasks,
    measured.agreeing_share_ci_low as ci_low,
    measured.agreeing_share_ci_high as ci_high,
    measured.agreeing_share_is_small as is_small
from intermediate.review_figures as figures
left join intermediate.measured using (figure_id, basis)
