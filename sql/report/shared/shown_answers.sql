-- One row: an answer of a model that is shown.
-- begins with: entries
select
    entries.entry,
    responses.*
from responses
inner join entries using (model, model_config_hash, vintage)
where
    responses.benchmark = $benchmark
    and responses.dataset_revision = $revision
