-- One row: a node of a tree, parents before their children.
select
    node_id,
    parent_id,
    level,
    name
from capability_node_rows
where tree_id = $tree_id
order by position
