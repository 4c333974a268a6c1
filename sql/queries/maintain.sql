-- name: spend
-- One row: the sums over a run's calls on a day, for a purpose, with a model, from
-- the ledger; it replaces the stored table.
select unnest(from_json($spend::json, $structure), recursive := true);

-- name: run_cost
-- The cost of one run, by purpose and called model.
--
-- with: queries/maintain/spend, marts/costs/run_costs
select purpose, called_model,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd
from run_costs
where run_id = $run_id
group by purpose, called_model
order by purpose, called_model;

-- name: runs
-- One row: a run since a moment, the latest first.
--
-- with: queries/maintain/spend, marts/costs/run_costs, intermediate/costs/run_totals
select run_id, started_at, ended_at, command, night, outcome, responses, verdicts, cost_usd,
    unpriced_calls
from intermediate.run_totals
where $since::timestamptz is null or started_at >= $since::timestamptz
order by started_at desc, run_id
limit $n_most;

-- name: daily_spend
-- The spend by day (UTC) and called model since a day, the latest day first.
--
-- with: queries/maintain/spend, marts/costs/run_costs
select day, called_model,
    sum(calls)::bigint as calls,
    sum(failed_calls)::bigint as failed_calls,
    sum(unpriced_calls)::bigint as unpriced_calls,
    sum(prompt_tokens)::bigint as prompt_tokens,
    sum(cached_tokens)::bigint as cached_tokens,
    sum(completion_tokens)::bigint as completion_tokens,
    known_cost(exact_sum(cost_usd), sum(unpriced_calls)) as cost_usd
from run_costs
where day >= $first_day
group by day, called_model
order by day desc, called_model;

-- name: published_cells
-- One row: a response or verdict among some calls for which a row is published.
select response_id as cell from responses
where response_id in (select unnest($cells::varchar[]))
union all
select verdict_id from verdicts
where verdict_id in (select unnest($cells::varchar[]));

-- name: stored_calls
-- One row: the row that a call was made for, and a flag that is true if decided. A
-- call for several criteria is left out until all of them are decided.
with stored as (
    select response_id as cell, status from responses
    union all
    select verdict_id, status
    from verdicts
    where not exists (
        from verdicts as others
        where others.response_id = verdicts.response_id
            and others.piece_hash = verdicts.piece_hash
            and others.value is null
    )
    union all
    select verdict_id, status from control_verdicts
    union all
    select verdict_id, status from neighbour_verdicts
)

select cell, bool_or(list_contains($decided, status)) as is_decided
from stored
where cell in (select unnest($cells::varchar[]))
group by cell;

-- name: run_total
-- The calls, tokens and cost of one run, as columns of `runs`; 0 if it made no call.
--
-- with: queries/maintain/spend, marts/costs/run_costs
select
    coalesce(sum(calls), 0)::bigint as calls,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
    nullif(sum(cached_tokens), 0)::bigint as cached_tokens,
    nullif(sum(cached_tokens), 0) / sum(prompt_tokens) as cached_share,
    coalesce(sum(completion_tokens), 0)::bigint as completion_tokens,
    known_cost(coalesce(exact_sum(cost_usd), 0), coalesce(sum(unpriced_calls), 0)) as cost_usd
from run_costs
where run_id = $run_id;

-- name: total_cost
-- The number and cost of the calls of one run, or of all runs of a night, and the
-- number of the latter.
--
-- with: queries/maintain/spend, marts/costs/run_costs
with runs_of_night as (
    select run_id
    from runs
    where night = $night and config ->> 'benchmark' = $benchmark
)

select
    (select count(*) from runs_of_night) as n_runs,
    coalesce(sum(calls), 0)::bigint as calls,
    coalesce(sum(unpriced_calls), 0)::bigint as unpriced_calls,
    known_cost(coalesce(exact_sum(cost_usd), 0), coalesce(sum(unpriced_calls), 0)) as cost_usd
from run_costs
where run_id = $run_id or run_id in (from runs_of_night);
