-- One row: a run, with the number of its rows and the cost of its calls.
--
-- The rows of a run that was killed or is in progress are counted. The cost is
-- that of run_costs; for a run without calls there, such as one of another
-- warehouse, the cost that it stored at its end.
--
-- built as: view
-- depends on: responses, run_costs, runs, verdicts
with written as (
    select run_id, 1 as responses, 0 as verdicts
    from responses
    union all by name
    select run_id, 0 as responses, 1 as verdicts
    from verdicts
),

unended as (
    select runs.run_id,
        coalesce(sum(written.responses), 0)::bigint as responses,
        coalesce(sum(written.verdicts), 0)::bigint as verdicts
    from runs
    left join written using (run_id)
    where runs.outcome in ('running', 'killed')
    group by runs.run_id
),

paid as (
    select run_id,
        known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd,
        sum(unpriced_calls)::bigint as unpriced_calls
    from run_costs
    group by run_id
)

select runs.run_id, runs.started_at, runs.ended_at, runs.command, runs.config, runs.git_commit,
    runs.night, runs.outcome,
    coalesce(unended.responses, runs.responses_made) as responses,
    coalesce(unended.verdicts, runs.verdicts_made) as verdicts,
    runs.calls,
    case when paid.run_id is null then runs.cost_usd else paid.cost_usd end as cost_usd,
    coalesce(paid.unpriced_calls, 0) as unpriced_calls
from runs
left join unended using (run_id)
left join paid using (run_id)
