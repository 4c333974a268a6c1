-- What every entry answered to some tasks, trial by trial, each as JSON; the
-- text comes last.
-- begins with: shown_answers
select task_id, entry,
    list(to_json({
        trial: trial,
        is_older: is_older,
        response_id: response_id,
        status: status,
        error: error,
        source: source,
        served_model: served_model,
        finish_reason: finish_reason,
        degraded: degraded,
        chars_alnum: chars_alnum,
        prompt_tokens: prompt_tokens,
        completion_tokens: completion_tokens,
        reasoning_tokens: reasoning_tokens,
        cost_usd: cost_usd,
        latency_s: latency_s,
        attempts: attempts,
        text: text
    }) order by trial, is_older, response_id) as answers
from shown_answers
where task_id in (select unnest($tasks::varchar[]))
group by task_id, entry
order by task_id, entry
