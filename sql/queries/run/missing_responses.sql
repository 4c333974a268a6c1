-- One row: a task and trial in which a model has no answer, or a failed one
-- that is to be tried again. An imported answer fills its place.
with wanted_tasks as (
    select
        unnest($tasks::varchar[]) as task_id,
        generate_subscripts($tasks::varchar[], 1) as position
),

wanted as (
    select task_id, trial, position
    from wanted_tasks
    cross join (select unnest($trials::bigint[]) as trial)
),

filled as (
    select task_id, trial
    from responses
    inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and model = $model
        and vintage = $vintage
        and (model_config_hash = $model_config_hash or source = 'imported')
        and not (list_contains($again::varchar[], status) or ($retry_failed and status <> 'ok'))
)

select task_id, trial
from wanted
anti join filled using (task_id, trial)
order by trial, position
