-- A fingerprint of everything that the drill-down shows of an entry's answers
-- to a task: it changes when any of it does. What is shown is in the queries
-- answers, verdicts, grounds and points.
-- begins with: shown_answers, shown_grounds, shown_points
with prints as (
    select task_id, entry,
        1 as n_answers,
        hash(
            'answer', trial, is_older, response_id, status, error, source, served_model,
            finish_reason, degraded, chars_alnum, prompt_tokens, completion_tokens,
            reasoning_tokens, cost_usd, latency_s, attempts, text
        ) as print
    from shown_answers
    union all
    select task_id, entry,
        0 as n_answers,
        hash(
            'verdict', verdict_id, trial, is_older, judging, position, status,
            grading,
            explanation,
            error,
            asked,
            chunks,
            decided_by,
            escalated_because,
            -- One that failed again as before has another reply.
            if(status in ('met', 'partial', 'unmet'), null, created_at)
        ) as print
    from shown_grounds
    union all
    select task_id, entry,
        0 as n_answers,
        hash(
            'points', response_id, trial, judging, value, value_lower, value_upper, points,
            undecided_negative, undecided_positive, positive, n_met, n_decided, n_wanted
        ) as print
    from shown_points
)

select task_id, entry,
    sum(n_answers)::bigint as n_answers,
    -- Two sums of the same hashes: no order, and nothing that cancels out.
    concat_ws(' ', count(*), bit_xor(print), sum(print)) as fingerprint
from prints
group by task_id, entry
order by task_id, entry
