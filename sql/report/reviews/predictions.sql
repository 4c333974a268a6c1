-- How often graders, or people, disagree about criteria that fail a check and
-- about those that pass it.
select outcome, reviewer, review_check, failing_rate, passing_rate, difference, difference_ci_low,
    difference_ci_high, odds_ratio, odds_ratio_ci_low, odds_ratio_ci_high, auc, auc_ci_low,
    auc_ci_high, is_small, n_criteria, n_failing, n_tasks
from review_predictions
where benchmark = $benchmark and dataset_revision = $revision
order by outcome, reviewer, auc desc nulls last, review_check
