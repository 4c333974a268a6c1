-- The runs, the latest first, with what they made and what their calls cost.
-- The one that writes the report is left out: how it ends is not known yet. One
-- that has not ended, and whose process was gone before the published state was
-- opened, was killed.
select
    timezone('UTC', started_at) as started_at,
    night, command,
    if(
        outcome = 'running' and not list_contains($living::varchar[], run_id),
        'killed',
        outcome
    ) as outcome,
    responses, verdicts, calls, cost_usd, unpriced_calls,
    epoch(ended_at - run_totals.started_at) / 60 as minutes,
    run_id, git_commit
from staging.run_totals
where coalesce(json_extract_string(config, '$.benchmark'), $benchmark) = $benchmark
    and (run_id <> $run or ended_at is not null)
order by run_totals.started_at desc, run_id
