-- One row: a model whose answers of a vintage were imported.
select distinct model
from responses
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and vintage = $vintage
    and source = 'imported'
order by model
