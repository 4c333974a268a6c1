-- One row: a run that made verdicts, the latest first.
select
    run_id,
    started_at,
    command,
    night
from runs
where
    run_id in (
        select run_id
        from verdicts
        where benchmark = $benchmark
    )
order by started_at desc, run_id
