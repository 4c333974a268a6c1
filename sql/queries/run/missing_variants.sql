-- The criteria of some tasks that have no words of a variant of the rubric yet,
-- in the rubric's order.
with done as (
    select task_id, original_id, original_hash
    from criterion_variants
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and rubric = $rubric
        and not (list_contains($again::varchar[], status) or ($retry_failed and status <> 'ok'))
)

select criteria.task_id, criteria.criterion_id,
    criteria.content_hash as criterion_hash,
    criteria.title
from criteria
anti join done
    on criteria.task_id = done.task_id
        and criteria.criterion_id = done.original_id
        and criteria.content_hash = done.original_hash
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($tasks::varchar[], criteria.task_id)
order by list_position($tasks::varchar[], criteria.task_id), criteria.position
