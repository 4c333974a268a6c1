-- One row: a criterion as it stands today of an admitted task, with the latest
-- phrase that a model wrote for it with a template.
select coalesce(tasks.field, '(none)') as field, task_id, criterion_id, criterion_hash, phrase
from criterion_capabilities as written
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and written.model_config_hash = $model_config_hash
    and written.template_hash = $template_hash
    and written.status = 'ok'
    and written.criterion_hash = criteria.content_hash
    and tasks.is_admitted
qualify row_number() over (
    partition by task_id, criterion_id
    order by written.created_at desc, capability_id
) = 1
order by field, task_id, criterion_id
