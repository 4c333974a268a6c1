-- One row: a model run, by the names that distinguish it from all others.
--
-- built as: view
-- depends on: staging.model_runs
select * exclude (ranking_id, judging_id, trials, n_trials, first_answered_at, is_latest)
from staging.model_runs
