-- built as: view
-- depends on: intermediate.graded_verdicts, intermediate.judged_criteria,
--     intermediate.model_runs, criteria, responses, tasks, verdicts
with readings as (
    -- It starts from the verdicts, so that a look-up by `verdict_id` reads one of
    -- them and not the rubrics of all responses.
    select verdict_id, response_id, judging_id, criterion_id, criterion_hash, status, value
    from intermediate.graded_verdicts
    union all by name
    -- Criteria that are not judged yet have no row.
    select
        null as verdict_id,
        judged_criteria.response_id, model_runs.judging_id, judged_criteria.criterion_id,
        null as criterion_hash,
        judged_criteria.status,
        null as value
    from intermediate.judged_criteria
    inner join intermediate.model_runs using (model_run_id)
    where judged_criteria.status = 'no_response'
)

select readings.verdict_id, readings.response_id,
    model_runs.* exclude (
        model_run_id, ranking_id, judging_id, trials, n_trials, is_latest, first_response_at
    ),
    responses.task_id, tasks.field, tasks.topic, responses.trial, readings.criterion_id,
    criteria.title, criteria.weight, criteria.severity,
    coalesce(criteria.category, '(none)') as category,
    readings.status, readings.value,
    verdicts.* exclude (
        verdict_id, response_id, benchmark, dataset_revision, task_id, criterion_id, model, trial,
        vintage, judge, judge_config_hash, template_hash, grading, judge_trial, status, value
    ),
    responses.status as response_status,
    responses.text as response_text
from readings
inner join responses using (response_id)
inner join intermediate.model_runs
    on readings.judging_id = model_runs.judging_id
        and responses.benchmark = model_runs.benchmark
        and responses.dataset_revision = model_runs.dataset_revision
        and responses.model = model_runs.model
        and responses.model_config_hash = model_runs.model_config_hash
        and responses.vintage = model_runs.vintage
        and list_contains(model_runs.trials, responses.trial)
inner join tasks
    on responses.benchmark = tasks.benchmark
        and responses.dataset_revision = tasks.dataset_revision
        and responses.task_id = tasks.task_id
        and tasks.is_admitted
inner join criteria
    on responses.benchmark = criteria.benchmark
        and responses.dataset_revision = criteria.dataset_revision
        and responses.task_id = criteria.task_id
        and readings.criterion_id = criteria.criterion_id
        and coalesce(readings.criterion_hash, criteria.content_hash) = criteria.content_hash
left join verdicts using (verdict_id)
