-- One row: a response in a model run with a decision on each of its criteria. Of all
-- other responses, verdicts have to be read to know what is missing.
--
-- built as: view
-- depends on: intermediate.response_points
select
    model_run_id,
    response_id,
    n_wanted
from intermediate.response_points
where breakdown = 'all' and n_decided = n_wanted
