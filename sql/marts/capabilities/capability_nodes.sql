-- built as: view
-- depends on: capability_node_rows, capability_trees
select nodes.*
from capability_node_rows as nodes
inner join capability_trees using (benchmark, dataset_revision, field, tree_id)
