-- One row: the hard selection of a field that was made last.
select selection_id
from staging.latest_selections
where benchmark = $benchmark and dataset_revision = $revision
