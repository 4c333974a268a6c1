-- built as: view
-- depends on: staging.judged_criteria, staging.model_runs, criteria, responses,
--     tasks, verdicts
select
    judged_criteria.verdict_id,
    judged_criteria.response_id,
    model_runs.benchmark,
    model_runs.dataset_revision,
    judged_criteria.task_id,
    tasks.field,
    tasks.topic,
    model_runs.model,
    model_runs.model_config_hash,
    judged_criteria.trial,
    model_runs.vintage,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    judged_criteria.criterion_id,
    criteria.title,
    criteria.weight,
    criteria.severity,
    judged_criteria.category,
    judged_criteria.status,
    judged_criteria.value,
    verdicts.* exclude (
        verdict_id, response_id, benchmark, dataset_revision, task_id,
        criterion_id, model, trial, vintage, judge, judge_config_hash,
        template_hash, grading, judge_trial, status, value
    ),
    responses.status as response_status,
    responses.text as response_text
from staging.judged_criteria
inner join staging.model_runs using (model_run_id)
inner join responses using (response_id)
inner join tasks
    on
        responses.benchmark = tasks.benchmark
        and responses.dataset_revision = tasks.dataset_revision
        and responses.task_id = tasks.task_id
inner join criteria
    on
        responses.benchmark = criteria.benchmark
        and responses.dataset_revision = criteria.dataset_revision
        and responses.task_id = criteria.task_id
        and judged_criteria.criterion_id = criteria.criterion_id
left join verdicts using (verdict_id)
-- What is still to be judged has no verdict to show.
where judged_criteria.status <> 'not_judged'
