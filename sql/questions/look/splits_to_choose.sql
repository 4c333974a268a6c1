-- The splits of a revision that have an admitted task.
select distinct split
from staging.task_set_members
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and not is_own_hard
order by split
