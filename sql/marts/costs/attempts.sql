-- One request of a call, with the labels of the row that it was made for.
--
-- built as: view
-- depends on: attempt_rows, control_verdicts, neighbour_verdicts, responses, runs, verdicts
with rows_written as (
    select response_id as row_id, 'sample' as purpose, benchmark, dataset_revision, task_id,
        response_id, model, trial, vintage
    from responses
    union all by name
    select verdict_id as row_id, 'judge' as purpose, benchmark, dataset_revision, task_id,
        response_id, verdict_id, model, trial, vintage, judge
    from verdicts
    union all by name
    -- A verdict may be in several control sets.
    select distinct verdict_id as row_id, 'drift' as purpose, benchmark, dataset_revision, task_id,
        response_id, verdict_id, model, trial, vintage, judge
    from control_verdicts
    union all by name
    select verdict_id as row_id, 'neighbours' as purpose, benchmark, dataset_revision, task_id,
        response_id, verdict_id, model, trial, vintage, judge
    from neighbour_verdicts
)

select
    attempt_id,
    run_id,
    night,
    purpose,
    called_model,
    benchmark,
    dataset_revision,
    task_id,
    model,
    trial,
    vintage,
    judge,
    response_id,
    verdict_id,
    attempt,
    status,
    http_status,
    latency_s,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    reasoning_tokens,
    cost_usd,
    finished_at
from attempt_rows
left join rows_written using (row_id, purpose)
left join (select run_id, night from runs) as nights using (run_id)
