-- built as: view
-- depends on: capability_measures, capability_analyses, capability_nodes
select measures.* exclude (analysis_id), nodes.field, nodes.parent_id, nodes.level, nodes.name
from capability_measures as measures
inner join capability_analyses using (analysis_id)
inner join capability_nodes as nodes using (tree_id, node_id)
