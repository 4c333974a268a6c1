-- One row: what came of a request for the name of a node.
select
    name_id,
    name,
    status,
    run_id
from capability_names
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
