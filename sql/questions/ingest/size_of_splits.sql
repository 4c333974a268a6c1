-- One row: how many tasks some splits have, with how many criteria.
select
    count(*) as n_tasks,
    coalesce(sum(n_criteria), 0) as n_criteria
from tasks
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and list_has_any(splits, $splits::varchar[])
