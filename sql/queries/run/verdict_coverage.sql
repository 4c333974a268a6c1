-- One row: how many criteria of a model's answers in a trial stand where (met,
-- not_judged, ...) under one judging.
select model, model_config_hash, vintage, trial, status, count(*) as n
from intermediate.judged_criteria
inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
    and list_contains($tasks::varchar[], task_id)
    and judge = $judge
    and judge_config_hash = $judge_config_hash
    and template_hash = $template_hash
    and grading = $grading
    and judge_trial = $judge_trial
group by all
