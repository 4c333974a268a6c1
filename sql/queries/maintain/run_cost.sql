-- What one run cost, by what its calls were made for and the model that was
-- called.
select purpose, called_model,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd
from run_costs
where run_id = $run_id
group by purpose, called_model
order by purpose, called_model
