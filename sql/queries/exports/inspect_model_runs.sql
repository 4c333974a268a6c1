-- One row: a configured model, sampled in one vintage, under one judging, that
-- has a response to one of some tasks. What only reads ternary grades as binary
-- holds the same verdicts, and is left out.
with answered as (
    select distinct model_run_id
    from intermediate.wanted_responses
    where list_contains($task_ids::varchar[], task_id)
)

select model_runs.*, judgings.rubric, judgings.is_imported, hiding_runs.may_hide_failures
from intermediate.model_runs
inner join answered using (model_run_id)
inner join intermediate.judgings using (judging_id)
left join intermediate.hiding_runs using (model_run_id)
where model_runs.benchmark = $benchmark
    and model_runs.dataset_revision = $revision
    and model_runs.grading <> 'ternary_as_binary'
    and ($models = [] or list_contains($models::varchar[], model_runs.model))
    and counts_as_judge(
        $judges, model_runs.benchmark, model_runs.dataset_revision,
        model_runs.judge, model_runs.judge_config_hash
    )
    and (
        $vintage::varchar = 'all' or model_runs.vintage = $vintage
        or ($vintage::varchar is null and model_runs.is_latest)
    )
order by model_runs.model, model_runs.model_config_hash, model_runs.vintage, model_runs.judge,
    model_runs.judge_config_hash, model_runs.template_hash, model_runs.grading,
    model_runs.judge_trial
