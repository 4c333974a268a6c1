-- One row: an item of an analysis that is not asked about again.
select {key} as row_id
from {table}
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and (status = 'ok' or not ($retry_failed::boolean or list_contains($again::varchar[], status)))
