-- One row: a category of criteria.
select distinct coalesce(category, '(none)') as category
from criteria
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by category
