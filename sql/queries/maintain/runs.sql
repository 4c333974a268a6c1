-- One row: a run since a moment, the latest first.
select run_id, started_at, ended_at, command, night, outcome, responses, verdicts, cost_usd,
    unpriced_calls
from intermediate.run_totals
where $since::timestamptz is null or started_at >= $since::timestamptz
order by started_at desc, run_id
limit $n_most
