-- One row: an admitted task of a split that hard selections hold; the task sets
-- are the splits.
select distinct
    hash(split_members.split) as task_set_id,
    benchmark, dataset_revision, split_members.split,
    true as is_own_hard,
    task_id
from hard_subset
inner join split_members using (benchmark, dataset_revision, task_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where list_contains($selections::varchar[], hard_subset.selection_id) and tasks.is_admitted
