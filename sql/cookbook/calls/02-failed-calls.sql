-- Which responses and verdicts failed, and why?
with calls as (
    select 'response' as what, model, vintage, null as judge, status, error, attempts, created_at
    from responses
    union all
    select 'verdict' as what, model, vintage, judge, status, error, attempts, created_at
    from verdicts
)

select what, model, vintage, judge, status, error,
    count(*) as calls,
    sum(attempts) as attempts,
    max(created_at) as latest
from calls
where status not in ('ok', 'met', 'partial', 'unmet')
group by all
order by calls desc, what, model, vintage, judge, status, error
