-- What one run cost in all; 0 where it made no call.
select known_cost(coalesce(exact_sum(cost_usd), 0), coalesce(sum(unpriced_calls), 0)) as cost_usd
from run_costs
where run_id = $run_id
