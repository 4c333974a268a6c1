-- One row: a run that has not ended as far as is published; and of those that
-- evaluate, the one that ended last.
with latest as (
    select run_id
    from runs
    where outcome <> 'running'
        and not regexp_matches(command, '^prbench (import|ingest|assemble|aggregate|select-hard)\b')
    order by coalesce(ended_at, started_at) desc, run_id
    limit 1
)

select run_id, command, night, config, started_at, ended_at, outcome
from runs
where outcome = 'running' or run_id in (select run_id from latest)
order by started_at, run_id
