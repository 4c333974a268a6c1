-- The nodes of the trees of capabilities, parents before their children.
select node_id, parent_id, field, level, coalesce(name, '(no name)') as name, n_criteria, n_tasks
from capability_nodes
where benchmark = $benchmark and dataset_revision = $revision
order by field, position
