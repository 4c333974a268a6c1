-- One row: a criterion in other words, without these words.
select
    task_id,
    rubric,
    criterion_id,
    original_id,
    original_hash,
    content_hash,
    status
from criterion_variants
where benchmark = $benchmark and dataset_revision = $revision
order by all
