-- One row: an admitted task of some splits, in the order of the splits.
select task_id
from split_members
inner join tasks using (benchmark, dataset_revision, task_id)
where benchmark = $benchmark
    and dataset_revision = $revision
    and is_admitted
    and list_contains($splits::varchar[], split)
group by task_id
order by min((list_position($splits::varchar[], split), position))
