-- What the calls of each night cost, by what they were made for, discarded
-- attempts included.
select runs.night, run_costs.purpose,
    known_cost(
        -- In an order, so that the last digits of the same data are the same.
        sum(run_costs.cost_usd order by run_costs.cost_usd),
        sum(run_costs.unpriced_calls)
    ) as cost_usd,
    sum(run_costs.calls)::bigint as calls,
    sum(run_costs.failed_calls)::bigint as failed_calls,
    sum(run_costs.unpriced_calls)::bigint as unpriced_calls,
    sum(run_costs.prompt_tokens)::bigint as prompt_tokens,
    sum(run_costs.cached_tokens)::bigint as cached_tokens,
    sum(run_costs.completion_tokens)::bigint as completion_tokens
from run_costs
inner join runs using (run_id)
where runs.night is not null
    and coalesce(json_extract_string(runs.config, '$.benchmark'), $benchmark) = $benchmark
group by runs.night, run_costs.purpose
order by runs.night, run_costs.purpose
