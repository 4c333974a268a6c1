-- built as: view
-- depends on: staging.model_run_names, staging.response_scores
select scored.response_id,
    names.* exclude (model_run_id),
    scored.label as category,
    scored.* exclude (response_id, model_run_id, n_trials, breakdown, label, lowest, highest, n_met)
from staging.response_scores as scored
inner join staging.model_run_names as names using (model_run_id)
where scored.breakdown = 'category'
