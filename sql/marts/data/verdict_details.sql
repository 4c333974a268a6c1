-- built as: view
-- depends on: intermediate.current_tasks, intermediate.graded_verdicts,
--     intermediate.judged_criteria, intermediate.model_runs, criteria, responses, tasks, verdicts
with readings as (
    -- It starts from the verdicts, so that a look-up by `verdict_id` reads one of
    -- them and not the rubrics of all responses.
    select verdict_id, response_id, judging_id, criterion_id, criterion_hash, status, value
    from intermediate.graded_verdicts
    union all by name
    -- Criteria that are not judged yet have no row.
    select
        null as verdict_id,
        response_id, judging_id, criterion_id,
        null as criterion_hash,
        status,
        null as value
    from intermediate.judged_criteria
    inner join intermediate.model_runs using (model_run_id)
    where status = 'no_response'
)

select
    verdict_id,
    response_id,
    benchmark,
    dataset_revision,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    vintage,
    model,
    model_config_hash,
    task_id,
    tasks.field,
    tasks.topic,
    responses.trial,
    criterion_id,
    criteria.title,
    criteria.weight,
    criteria.severity,
    coalesce(category, '(none)') as category,
    readings.status,
    readings.value,
    verdicts.criterion_hash,
    verdicts.served_model,
    verdicts.served_fingerprint,
    verdicts.source,
    verdicts.import_batch,
    verdicts.may_hide_failures,
    verdicts.explanation,
    verdicts.probability,
    verdicts.confidence,
    verdicts.n_in_call,
    verdicts.position_in_call,
    verdicts.piece_hash,
    verdicts.decided_by,
    verdicts.escalated_because,
    verdicts.prompt_tokens,
    verdicts.cached_tokens,
    verdicts.completion_tokens,
    verdicts.cost_usd,
    verdicts.input_usd_per_mtok,
    verdicts.cached_usd_per_mtok,
    verdicts.output_usd_per_mtok,
    verdicts.price_table,
    verdicts.latency_s,
    verdicts.attempts,
    verdicts.error,
    verdicts.run_id,
    verdicts.created_at,
    responses.status as response_status,
    responses.text as response_text,
    coalesce(current_tasks.is_latest, false) as is_latest,
    coalesce(current_tasks.is_current, false) as is_current,
    tasks.splits,
    coalesce(current_tasks.latest_splits, []) as latest_splits
from readings
inner join responses using (response_id)
inner join intermediate.model_runs
    using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
left join intermediate.current_tasks using (model_run_id, task_id)
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
left join verdicts using (verdict_id)
where list_contains(model_runs.trials, responses.trial)
    and tasks.is_admitted
    and coalesce(readings.criterion_hash, criteria.content_hash) = criteria.content_hash
