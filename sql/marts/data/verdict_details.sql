-- built as: view
-- depends on: intermediate.current_tasks, intermediate.graded_verdicts,
--     intermediate.model_runs, intermediate.response_points, criteria, responses, tasks
with rubrics as (
    select field, topic, splits, title, weight, severity,
        coalesce(category, '(none)') as category,
        -- One number joins millions of verdicts in half the time of five texts.
        hash(
            criteria.benchmark, criteria.dataset_revision, task_id, criterion_id,
            criteria.content_hash
        ) as criterion_key
    from criteria
    inner join tasks using (benchmark, dataset_revision, task_id)
    where is_admitted
),

run_responses as (
    select response_id, judging_id, task_id, model, judge, judge_config_hash, template_hash,
        grading, judge_trial, vintage, model_config_hash, trial,
        coalesce(is_latest, false) as is_latest,
        coalesce(is_current, false) as is_current,
        coalesce(latest_splits, []) as latest_splits
    from responses
    inner join intermediate.model_runs
        using (benchmark, dataset_revision, model, model_config_hash, vintage)
    left join intermediate.current_tasks using (model_run_id, task_id)
    where list_contains(trials, trial)
),

details as (
    from intermediate.graded_verdicts
    union all by name
    -- Criteria that are not judged yet have no row.
    select
        response_id, judging_id, benchmark, dataset_revision, task_id, model, criterion_id,
        content_hash as criterion_hash,
        'no_response' as status
    from intermediate.response_points
    inner join responses using (response_id, task_id)
    inner join intermediate.model_runs using (model_run_id, benchmark, dataset_revision, model)
    inner join criteria using (benchmark, dataset_revision, task_id)
    where breakdown = 'all'
        and responses.status <> 'ok'
        and not has_verdicts
)

select
    details.verdict_id,
    details.response_id,
    details.benchmark,
    details.dataset_revision,
    run_responses.judge,
    run_responses.judge_config_hash,
    run_responses.template_hash,
    run_responses.grading,
    run_responses.judge_trial,
    run_responses.vintage,
    run_responses.model,
    run_responses.model_config_hash,
    details.task_id,
    field,
    topic,
    run_responses.trial,
    details.criterion_id,
    title,
    weight,
    rubrics.severity,
    category,
    details.status,
    details.value,
    judged_hash as criterion_hash,
    details.served_model,
    details.served_fingerprint,
    details.source,
    details.import_batch,
    details.may_hide_failures,
    details.explanation,
    judged_probability as probability,
    details.confidence,
    details.n_in_call,
    details.position_in_call,
    details.piece_hash,
    details.decided_by,
    details.escalated_because,
    details.prompt_tokens,
    details.cached_tokens,
    details.completion_tokens,
    judged_cost_usd as cost_usd,
    details.members_usd,
    details.input_usd_per_mtok,
    details.cached_usd_per_mtok,
    details.output_usd_per_mtok,
    details.price_table,
    details.latency_s,
    details.attempts,
    details.error,
    details.run_id,
    details.created_at,
    responses.status as response_status,
    responses.text as response_text,
    is_latest,
    is_current,
    splits,
    latest_splits
from details
-- By task and model too, so that a filter on these is applied before the join.
inner join run_responses using (response_id, judging_id, task_id, model)
-- Joined again for their texts, which then are read only for these verdicts.
inner join responses using (response_id, task_id, model)
inner join rubrics
    on rubrics.criterion_key = hash(
        details.benchmark, details.dataset_revision, details.task_id, details.criterion_id,
        details.criterion_hash
    )
