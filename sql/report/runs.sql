-- The runs, the latest first. What a run made that did not come to its end, or is under way, is counted.
with made as (
    select run_id, 1 as responses, 0 as verdicts, cost_usd
    from responses
    union all by name
    select run_id, 0 as responses, 1 as verdicts, cost_usd
    from verdicts
),

unended as (
    select
        runs.run_id,
        coalesce(sum(made.responses), 0)::bigint as responses,
        coalesce(sum(made.verdicts), 0)::bigint as verdicts,
        if(
            count(made.run_id) = count(made.cost_usd),
            coalesce(sum(made.cost_usd order by made.cost_usd), 0),
            null
        ) as cost_usd
    from runs
    left join made using (run_id)
    where runs.outcome in ('running', 'killed')
    group by runs.run_id
)

select
    timezone('UTC', runs.started_at) as started_at,
    runs.night,
    runs.command,
    runs.outcome,
    coalesce(unended.responses, runs.responses_made) as responses,
    coalesce(unended.verdicts, runs.verdicts_made) as verdicts,
    runs.calls,
    if(unended.run_id is null, runs.cost_usd, unended.cost_usd) as cost_usd,
    epoch(runs.ended_at - runs.started_at) / 60 as minutes,
    runs.run_id,
    runs.git_commit
from runs
left join unended using (run_id)
where coalesce(json_extract_string(config, '$.benchmark'), $benchmark) = $benchmark
order by runs.started_at desc, runs.run_id
