-- How far reviewers of the same criteria agree with each other, in each check.
select review_check, reviewer_a,
    coalesce(reviewer_b, '') as reviewer_b,
    agreement, agreement_ci_low, agreement_ci_high, kappa, kappa_ci_low, kappa_ci_high, alpha,
    alpha_ci_low, alpha_ci_high, n, n_tasks
from reviewer_agreement
where benchmark = $benchmark and dataset_revision = $revision
order by review_check <> 'agree', review_check, reviewer_b is not null, reviewer_a, reviewer_b
