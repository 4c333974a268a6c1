-- One row: when the last response or verdict of a data set was made (UTC).
with rows_made as (
    select created_at
    from responses
    where benchmark = $benchmark and dataset_revision = $revision
    union all
    select created_at
    from verdicts
    where benchmark = $benchmark and dataset_revision = $revision
)

select
    strftime(max(created_at) at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')
        as latest
from rows_made
