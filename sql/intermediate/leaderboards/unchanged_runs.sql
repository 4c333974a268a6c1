-- One row: a model run whose stored points and scores are kept, since their content is
-- the same as when they were computed.
--
-- depends on: intermediate.computed_runs, temp.run_contents
select
    model_run_id
from temp.run_contents
semi join intermediate.computed_runs using (model_run_id, content)
