-- One row: an imported batch, retracted or not, with the numbers of its stored rows, the time of
-- the first, and the run that imported it.
with imported as (
    select import_batch, run_id, created_at, 'response' as kind, response_id as id
    from stored_responses
    where import_batch is not null
    union all
    select import_batch, run_id, created_at, 'verdict', verdict_id
    from stored_verdicts
    where import_batch is not null
    union all
    select import_batch, run_id, created_at, 'review', review_id
    from stored_expert_reviews
    where import_batch is not null
)

select
    import_batch,
    min(created_at) as imported_at,
    count(distinct id) filter (where kind = 'response') as n_responses,
    count(distinct id) filter (where kind = 'verdict') as n_verdicts,
    count(distinct id) filter (where kind = 'review') as n_reviews,
    arg_min(run_id, created_at) as run_id
from imported
group by import_batch
order by imported_at desc, import_batch;
