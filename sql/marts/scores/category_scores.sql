-- built as: view
-- depends on: intermediate.model_run_names, intermediate.response_scores
select scored.response_id,
    names.* exclude (model_run_id),
    scored.label as category,
    scored.* exclude (response_id, model_run_id, n_trials, breakdown, label, lowest, highest, n_met)
from intermediate.response_scores as scored
inner join intermediate.model_run_names as names using (model_run_id)
where scored.breakdown = 'category'
