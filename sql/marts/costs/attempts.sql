-- One request of a call, with the labels of the row that it was made for.
--
-- built as: view
-- depends on: attempt_rows, control_verdicts, neighbour_verdicts, responses, runs, verdicts
with rows_written as (
    select *, response_id as row_id, 'sample' as purpose
    from responses
    union all by name
    select *, verdict_id as row_id, 'judge' as purpose
    from verdicts
    union all by name
    -- A verdict may be in several control sets.
    select distinct verdict_id as row_id, 'drift' as purpose, benchmark, dataset_revision, task_id,
        response_id, verdict_id, model, trial, vintage, judge
    from control_verdicts
    union all by name
    select *, verdict_id as row_id, 'neighbours' as purpose
    from neighbour_verdicts
)

select
    attempt_rows.attempt_id,
    attempt_rows.run_id,
    runs.night,
    purpose,
    attempt_rows.called_model,
    rows_written.benchmark,
    rows_written.dataset_revision,
    rows_written.task_id,
    rows_written.model,
    rows_written.trial,
    rows_written.vintage,
    rows_written.judge,
    rows_written.response_id,
    rows_written.verdict_id,
    attempt_rows.attempt,
    attempt_rows.status,
    attempt_rows.http_status,
    attempt_rows.latency_s,
    attempt_rows.prompt_tokens,
    attempt_rows.cached_tokens,
    attempt_rows.completion_tokens,
    attempt_rows.reasoning_tokens,
    attempt_rows.cost_usd,
    attempt_rows.finished_at
from attempt_rows
left join rows_written using (row_id, purpose)
left join runs on attempt_rows.run_id = runs.run_id
