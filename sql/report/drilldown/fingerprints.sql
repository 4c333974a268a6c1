-- A fingerprint of everything that the drill-down shows of an entry's answers
-- to a task: it changes when any of it does. What is shown is in the queries
-- answers, verdicts, grounds and points.
-- begins with: shown_answers, shown_points, shown_verdicts
with found as (
    select
        verdict_id,
        bit_xor(
            hash("round", chunk_number, n_chunks, status, evidence)
        ) as print
    from evidence
    where benchmark = $benchmark and dataset_revision = $revision
    group by verdict_id
),

prints as (
    select
        task_id,
        entry,
        1 as n_answers,
        hash(
            'answer', trial, response_id, status, error, source, served_model,
            finish_reason, degraded, chars_alnum, prompt_tokens,
            completion_tokens, reasoning_tokens, cost_usd, latency_s, attempts,
            text
        ) as print
    from shown_answers
    union all
    select
        verdicts.task_id,
        verdicts.entry,
        0 as n_answers,
        hash(
            'verdict', verdicts.verdict_id, verdicts.trial, verdicts.judging,
            verdicts.position, verdicts.status, verdicts.grading,
            verdicts.explanation, verdicts.error, variants.title, found.print
        ) as print
    from shown_verdicts as verdicts
    left join criterion_variants as variants
        on
            verdicts.benchmark = variants.benchmark
            and verdicts.dataset_revision = variants.dataset_revision
            and verdicts.task_id = variants.task_id
            and verdicts.criterion_id = variants.original_id
            and verdicts.criterion_hash = variants.original_hash
            and verdicts.rubric = variants.rubric
    left join found on verdicts.verdict_id = found.verdict_id
    union all
    select
        task_id,
        entry,
        0 as n_answers,
        hash(
            'points', response_id, trial, judging, value, value_lower,
            value_upper, points, undecided_negative, undecided_positive,
            positive, n_met, n_decided, n_wanted
        ) as print
    from shown_points
)

select
    task_id,
    entry,
    sum(n_answers)::bigint as n_answers,
    -- Two sums of the same hashes: no order, and nothing that cancels out.
    concat_ws(' ', count(*), bit_xor(print), sum(print)) as fingerprint
from prints
group by task_id, entry
order by task_id, entry
