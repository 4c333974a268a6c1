-- One row: a criterion in the leaf of a tree that it belongs to.
select
    task_id,
    criterion_id,
    node_id
from capability_members
where tree_id = $tree_id and is_leaf
order by task_id, criterion_id
