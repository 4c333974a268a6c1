-- What did each night cost, by purpose and called model?
select coalesce(night, '(no night)') as night,
    purpose, called_model,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    round(sum(cost_usd), 4) as cost_usd
from run_costs
group by all
order by night desc, cost_usd desc nulls last, purpose, called_model
