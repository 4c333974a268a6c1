-- How well checks predict disagreement.
select * replace (round(n_failing)::bigint as n_failing)
from review_predictions
where benchmark = $benchmark and dataset_revision = $revision
order by outcome, reviewer, auc desc nulls last, review_check
