-- One row: a split that the report is of.
select distinct split, list_contains($hard_splits::varchar[], split) as is_hard
from split_members
where benchmark = $benchmark
    and dataset_revision = $revision
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
