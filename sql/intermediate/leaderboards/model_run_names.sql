-- One row: a model run, by the names that distinguish it from all others.
--
-- built as: view
-- depends on: intermediate.model_runs
select
    model_run_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash
from intermediate.model_runs
