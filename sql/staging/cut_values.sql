-- A task's values under every label that it stands under, or that its criteria have.
select task_parts.* exclude (cut, label), cut_members.cut, cut_members.label
from task_parts
inner join cut_members using (benchmark, dataset_revision, task_id)
where task_parts.cut = 'all'
union all by name
select * from task_parts
where cut <> 'all'
