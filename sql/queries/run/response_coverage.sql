-- One row: how many of a model's answers in a trial have a status, and how many
-- criteria their tasks have.
select
    model,
    model_config_hash,
    vintage,
    trial,
    source,
    status,
    count(*) as n,
    sum(n_criteria)::bigint as n_criteria
from responses
inner join tasks
    using (benchmark, dataset_revision, task_id, conversation_id)
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
    and list_contains($tasks::varchar[], task_id)
group by all
