-- One row: a hard selection of a data-set revision, the latest first.
select selection_id
from hard_subset
where benchmark = $benchmark and dataset_revision = $revision
group by selection_id
order by max(selected_at) desc
