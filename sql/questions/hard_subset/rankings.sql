-- One row: model runs that are ranked together, with their judging.
select distinct
    ranking_id,
    vintage,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial
from staging.model_runs
where
    benchmark = $benchmark
    and dataset_revision = $revision
