-- One row: a criterion of one of some tasks, in the order of the rubric.
select
    task_id,
    criterion_id,
    content_hash as criterion_hash,
    title
from criteria
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], task_id)
order by task_id, position
