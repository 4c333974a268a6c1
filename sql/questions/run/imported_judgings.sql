-- One row: who judged elsewhere, on answers of some vintages.
select distinct
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial
from staging.model_runs
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
    and judge_config_hash = 'imported'
    and grading <> 'ternary_as_binary'
order by all
