-- built as: view
-- depends on: capability_node_rows, capability_trees
select
    tree_id,
    node_id,
    benchmark,
    dataset_revision,
    field,
    parent_id,
    level,
    position,
    is_leaf,
    name,
    nodes.n_criteria,
    nodes.n_tasks,
    nodes.created_at
from capability_node_rows as nodes
inner join capability_trees using (benchmark, dataset_revision, field, tree_id)
