-- One row: the latest analysis of a judging.
select
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    analysis_id
from capability_analyses
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and method = $method
