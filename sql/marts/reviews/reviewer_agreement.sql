-- built as: view
-- depends on: staging.reviewer_figures, agreement_measures,
--     reliability_measures
select
    figures.* exclude (figure_id, basis, agreement, pass_share_a, pass_share_b),
    figures.agreement, pairs.agreement_ci_low, pairs.agreement_ci_high, pairs.kappa,
    pairs.kappa_ci_low, pairs.kappa_ci_high, sets.alpha, sets.alpha_ci_low, sets.alpha_ci_high,
    figures.pass_share_a, figures.pass_share_b
from staging.reviewer_figures as figures
left join agreement_measures as pairs
    on figures.figure_id = pairs.figure_id and figures.basis = pairs.basis
left join reliability_measures as sets
    on figures.figure_id = sets.figure_id and figures.basis = sets.basis
