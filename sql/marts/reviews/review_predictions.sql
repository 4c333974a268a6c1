-- built as: view
-- depends on: intermediate.measured, intermediate.prediction_figures
select
    benchmark,
    dataset_revision,
    source,
    reviewer,
    review_check,
    outcome,
    n_criteria,
    n_failing,
    n_tasks,
    n_tasks_failing,
    measured.failing_rate,
    measured.passing_rate,
    measured.difference,
    measured.difference_ci_low,
    measured.difference_ci_high,
    measured.odds_ratio,
    measured.odds_ratio_ci_low,
    measured.odds_ratio_ci_high,
    measured.auc,
    measured.auc_ci_low,
    measured.auc_ci_high,
    measured.failing_rate_is_small as is_small
from intermediate.prediction_figures
left join intermediate.measured using (figure_id, basis)
