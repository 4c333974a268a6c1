-- One row: a ranking: the judge configuration and the vintage of its model runs.
--
-- built as: view
-- depends on: intermediate.model_runs
select distinct
    ranking_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage
from intermediate.model_runs
