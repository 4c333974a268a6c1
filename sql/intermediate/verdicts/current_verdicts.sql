-- One row: a verdict that counts: on the current content of a criterion of an
-- admitted task.
--
-- built as: view
-- depends on: intermediate.graded_verdicts, criteria, tasks
select verdicts.response_id, verdicts.benchmark, verdicts.dataset_revision, verdicts.task_id,
    verdicts.criterion_id, verdicts.criterion_hash, verdicts.judging_id, verdicts.value,
    verdicts.cost_usd, criteria.weight,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity
from intermediate.graded_verdicts as verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where verdicts.criterion_hash = criteria.content_hash and tasks.is_admitted
