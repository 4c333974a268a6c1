-- built as: view
-- depends on: intermediate.measured, intermediate.reviewer_figures
select
    benchmark,
    dataset_revision,
    review_check,
    reviewer_a,
    reviewer_b,
    n,
    n_tasks,
    figures.agreement,
    measured.agreement_ci_low,
    measured.agreement_ci_high,
    measured.kappa,
    measured.kappa_ci_low,
    measured.kappa_ci_high,
    measured.alpha,
    measured.alpha_ci_low,
    measured.alpha_ci_high,
    figures.pass_share_a,
    figures.pass_share_b
from intermediate.reviewer_figures as figures
left join intermediate.measured using (figure_id, basis)
