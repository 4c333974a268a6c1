-- One row: a run, with what it made and what its calls cost.
--
-- What a run made that did not come to its end, or is under way, is counted.
-- Its cost is in run_costs, killed runs and runs that go on included;
-- only where a run has no calls there, such as one of another warehouse, by
-- what it wrote down at its end.
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
