-- One row: a criterion in one of its wordings, with its category and
-- weight.
select asked.task_id, asked.criterion_id, asked.title, asked.content_hash, asked.rubric,
    criteria.category, criteria.weight
from intermediate.rubric_criteria as asked
inner join criteria using (benchmark, dataset_revision, task_id, position)
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by asked.task_id, position
