-- What the calls of each night cost, by what they were made for, discarded attempts included.
select
    runs.night,
    spend.purpose,
    -- Calls whose price nobody knows are not in it, and where that holds for all of them there is no cost, not 0.
    case
        when sum(spend.unpriced_calls) < sum(spend.calls)
            -- In an order, so that the last digits of the same data are the same.
            then sum(spend.cost_usd order by spend.cost_usd)
    end as cost_usd,
    sum(spend.calls)::bigint as calls,
    sum(spend.failed_calls)::bigint as failed_calls,
    sum(spend.unpriced_calls)::bigint as unpriced_calls,
    sum(spend.prompt_tokens)::bigint as prompt_tokens,
    sum(spend.cached_tokens)::bigint as cached_tokens,
    sum(spend.completion_tokens)::bigint as completion_tokens
from spend
inner join runs using (run_id)
where
    runs.night is not null
    and coalesce(json_extract_string(runs.config, '$.benchmark'), $benchmark)
    = $benchmark
group by runs.night, spend.purpose
order by runs.night, spend.purpose
