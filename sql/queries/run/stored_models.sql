-- One row: a model that has responses of a vintage, and the configuration that
-- made the latest of them.
select
    model,
    vintage,
    arg_max(model_config_hash, created_at) as model_config_hash
from responses
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and list_contains($vintages::varchar[], vintage)
group by all
order by model
