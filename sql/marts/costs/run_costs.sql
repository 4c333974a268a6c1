-- The cost of a run's calls on a day, for a purpose, with a model. This is the
-- only definition of a run's cost: `prbench status`, the report, the tables in
-- Prefect's UI and `runs.cost_usd` are sums of its rows.
--
-- built as: view
-- depends on: control_verdicts, criterion_variants, neighbour_verdicts, responses, runs, spend,
--     verdicts
with rows_written as (
    select *, 'sample' as purpose, model as called_model, status <> 'ok' as is_failed
    from responses
    where source = 'sampled'
    union all by name
    select *, 'judge' as purpose, judge as called_model, value is null as is_failed
    from verdicts
    where source = 'judged'
    union all by name
    select *, 'drift' as purpose, judge as called_model, value is null as is_failed
    from control_verdicts
    union all by name
    select *, 'neighbours' as purpose, judge as called_model, value is null as is_failed
    from neighbour_verdicts
    union all by name
    select *, 'derive' as purpose, model as called_model, status <> 'ok' as is_failed
    from criterion_variants
    where model is not null
),

-- The cost of runs that are not in the ledger, such as those of another
-- warehouse, is in their rows.
from_rows as (
    select run_id,
        strftime(timezone('UTC', created_at), '%Y-%m-%d') as day,
        purpose, called_model,
        count(*) as calls,
        count(*) filter (is_failed) as failed_calls,
        count(*) - count(cost_usd) as unpriced_calls,
        coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
        coalesce(sum(cached_tokens), 0)::bigint as cached_tokens,
        coalesce(sum(completion_tokens), 0)::bigint as completion_tokens,
        coalesce(exact_sum(cost_usd), 0) as cost_usd
    from rows_written
    anti join spend using (run_id)
    group by all
),

all_costs as (
    from spend
    union all by name
    from from_rows
)

select
    run_id,
    day,
    purpose,
    called_model,
    calls,
    failed_calls,
    unpriced_calls,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    known_cost(cost_usd, unpriced_calls) as cost_usd,
    night
from all_costs
left join (select run_id, night from runs) as nights using (run_id)
