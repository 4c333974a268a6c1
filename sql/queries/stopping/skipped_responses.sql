-- One row: how many of some tasks a model has no response to in a trial.
with answered as (
    select task_id
    from responses
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and model = $model
        and list_contains($hashes::varchar[], model_config_hash)
        and vintage = $vintage
        and trial = $trial
)

select count(*) as n
from (select unnest($tasks::varchar[]) as task_id)
anti join answered using (task_id)
