-- One row: an imported file that has rows in the tables, the latest first.
with rows_of_batches as (
    select import_batch, created_at
    from responses
    where import_batch is not null
    union all
    select import_batch, created_at
    from verdicts
    where import_batch is not null
    union all
    select import_batch, created_at
    from expert_reviews
    where import_batch is not null
)

select import_batch
from rows_of_batches
group by import_batch
order by max(created_at) desc
