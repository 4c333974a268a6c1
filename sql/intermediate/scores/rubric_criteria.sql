-- One row: a criterion in its original wording, or in that of a variant of the
-- rubric.
--
-- built as: view
-- depends on: criteria, criterion_variants
select
    benchmark,
    dataset_revision,
    task_id,
    'original' as rubric,
    criterion_id,
    criterion_id as original_id,
    position,
    title,
    weight,
    category,
    severity,
    content_hash
from criteria
union all
select
    benchmark,
    dataset_revision,
    task_id,
    rubric,
    variants.criterion_id,
    original_id,
    position,
    variants.title,
    weight,
    category,
    severity,
    variants.content_hash
from criterion_variants as variants
inner join criteria using (benchmark, dataset_revision, task_id)
where variants.original_id = criteria.criterion_id
    and variants.original_hash = criteria.content_hash
    and variants.status = 'ok'
