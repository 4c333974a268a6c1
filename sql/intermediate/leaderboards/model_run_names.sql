-- One row: a model run, by the names that distinguish it from all others.
--
-- built as: view
-- depends on: intermediate.model_runs
select * exclude (ranking_id, judging_id, trials, n_trials, first_response_at, is_latest)
from intermediate.model_runs
