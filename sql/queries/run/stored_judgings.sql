-- One row: who judged answers of some vintages, elsewhere or at all.
select distinct judge, judge_config_hash, template_hash, grading, judge_trial
from intermediate.model_runs
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
    and ($is_any_source or judge_config_hash = 'imported')
    and grading <> 'ternary_as_binary'
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
order by all
