-- Which criteria go against the rest of their task, so that weight or sign may
-- be wrong?
select task_id, category, weight,
    round(met_share, 3) as met_share,
    n_models,
    round(rest_correlation, 3) as rest_correlation,
    round(rest_correlation_high, 3) as at_most,
    title
from criterion_statistics
where rest_correlation < 0
order by rest_correlation_high nulls last, rest_correlation, task_id
limit 50
