-- One row: an admitted task of a field, of some splits.
select field, task_id
from tasks
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and is_admitted
    and list_has_any(splits, $splits)
    and field is not null
