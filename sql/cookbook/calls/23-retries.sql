-- How many requests failed, by night and cause, and what did they cost?
select coalesce(night, '(no night)') as night,
    called_model, purpose,
    coalesce('HTTP ' || http_status, status) as cause,
    count(*) as failed_requests,
    round(sum(latency_s), 1) as seconds,
    round(sum(cost_usd), 4) as cost_usd,
    min(finished_at) as first_at,
    max(finished_at) as last_at
from attempts
where status <> 'ok'
group by all
order by night desc, failed_requests desc, called_model, cause
