-- What was spent on each day (UTC) and with each model that was called, since a
-- day; the latest day first.
select day, called_model,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    sum(prompt_tokens)::bigint as prompt_tokens,
    sum(cached_tokens)::bigint as cached_tokens,
    sum(completion_tokens)::bigint as completion_tokens,
    known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd
from run_costs
where day >= $first_day
group by day, called_model
order by day desc, called_model
