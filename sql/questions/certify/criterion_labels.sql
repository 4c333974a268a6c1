-- One row: a label of a criterion, of a kind that only some benchmarks have.
select task_id, criterion_id, kind, label
from criterion_labels
where benchmark = $benchmark and dataset_revision = $revision
order by all
