-- One row: how many of some tasks there are, with how many criteria.
select
    count(*) as n_tasks,
    coalesce(sum(n_criteria), 0)::bigint as n_criteria
from tasks
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], task_id)
