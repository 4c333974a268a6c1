-- One row: a verdict that counts, on a criterion as it stands today, of an
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
inner join criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
inner join tasks
    on criteria.benchmark = tasks.benchmark
        and criteria.dataset_revision = tasks.dataset_revision
        and criteria.task_id = tasks.task_id
where tasks.is_admitted
