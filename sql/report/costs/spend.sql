-- What all calls of all runs in this warehouse came to, discarded ones too, by
-- what they were made for and by model. Calls whose cost nobody knows are
-- counted and are not in the cost; where they leave nothing, it is NULL.
select purpose, called_model,
    sum(calls) as calls,
    sum(failed_calls) as failed_calls,
    sum(prompt_tokens) as prompt_tokens,
    sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as cached_share,
    sum(completion_tokens) as completion_tokens,
    round(known_cost(exact_sum(cost_usd), sum(unpriced_calls)), 9) as cost_usd,
    sum(unpriced_calls) as unpriced_calls,
    count(distinct run_id) as n_runs,
    min(day) as first_day,
    max(day) as last_day
from run_costs
group by purpose, called_model
order by cost_usd desc nulls last, purpose, called_model
