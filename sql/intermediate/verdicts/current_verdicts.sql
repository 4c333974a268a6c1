-- One row: a verdict that counts: on the current content of a criterion of an
-- admitted task.
--
-- built as: view
-- depends on: intermediate.graded_verdicts, criteria, tasks
select
    response_id,
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    criterion_hash,
    judging_id,
    value,
    probability,
    coalesce(cost_usd, members_usd) as cost_usd,
    weight,
    coalesce(category, '(none)') as category,
    coalesce(severity, '(none)') as severity,
    verdicts.created_at
from intermediate.graded_verdicts as verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where verdicts.criterion_hash = criteria.content_hash and tasks.is_admitted
