-- One row: a model with scores in capabilities.
select distinct model
from capability_scores
where
    benchmark = $benchmark
    and dataset_revision = $revision
order by model
