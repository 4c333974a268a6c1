-- One row: an expectation of the latest checks of an ingested revision.
select *
from checks
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and run_id = (
        select arg_max(run_id, created_at)
        from checks
        where benchmark = $benchmark and dataset_revision = $dataset_revision and suite = 'ingest'
    )
