-- One row: a run, with the number of its rows and the cost of its calls.
--
-- The rows of a run that was killed or is in progress are counted. The cost is
-- that of run_costs; for a run without calls there, such as one of another
-- warehouse, the cost that it stored at its end.
--
-- built as: view
-- depends on: responses, run_costs, runs, verdicts
with unended as (
    select run_id,
        (select count(*) from responses where responses.run_id = runs.run_id) as responses,
        (
            select count(*) from verdicts
            where verdicts.run_id = runs.run_id and source <> 'counted'
        ) as verdicts
    from runs
    where outcome in ('running', 'killed')
),

paid as (
    select run_id,
        known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd,
        sum(unpriced_calls)::bigint as unpriced_calls
    from run_costs
    group by run_id
)

select
    run_id,
    started_at,
    ended_at,
    command,
    config,
    git_commit,
    night,
    outcome,
    coalesce(unended.responses, runs.responses_made) as responses,
    coalesce(unended.verdicts, runs.verdicts_made) as verdicts,
    calls,
    case when paid.run_id is null then runs.cost_usd else paid.cost_usd end as cost_usd,
    coalesce(paid.unpriced_calls, 0) as unpriced_calls
from runs
left join unended using (run_id)
left join paid using (run_id)
