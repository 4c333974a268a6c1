-- One row: a usable answer of some vintages, with what rows of imports name it
-- by.
select
    response_id,
    task_id,
    model,
    trial,
    vintage,
    text
from responses
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
    and status = 'ok'
