-- built as: view
-- depends on: weakness_candidates, capability_analyses, capability_nodes
select candidates.* exclude (analysis_id, is_confirmed, compared_key),
    nodes.field, nodes.parent_id, nodes.level, nodes.name
from weakness_candidates as candidates
inner join capability_analyses using (analysis_id)
inner join capability_nodes as nodes using (tree_id, node_id)
where is_confirmed
