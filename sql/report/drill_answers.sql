-- What every entry answered to some tasks, trial by trial, as JSON.
select
    task_id,
    entries.entry,
    to_json(list({
        trial: trial,
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
    } order by trial, response_id)) as answers
from responses
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and task_id in (select unnest($tasks::varchar[]))
group by task_id, entries.entry
order by task_id, entries.entry
