-- One row: a phrase with its vector by a model.
select
    phrase,
    vector
from phrase_embeddings
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and model_config_hash = $model_config_hash
    and status = 'ok'
