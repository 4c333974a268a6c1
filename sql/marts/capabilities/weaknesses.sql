-- built as: view
-- depends on: weakness_candidates, capability_analyses, capability_nodes
select
    candidates.* exclude (analysis_id, is_confirmed, compared_key),
    nodes.field, nodes.parent_id, nodes.level, nodes.name
from weakness_candidates as candidates
inner join capability_analyses using (analysis_id)
inner join capability_nodes as nodes
    on candidates.tree_id = nodes.tree_id and candidates.node_id = nodes.node_id
where candidates.is_confirmed
