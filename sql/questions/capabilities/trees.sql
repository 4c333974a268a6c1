-- One row: the tree of a field that counts.
select
    field,
    tree_id,
    vectors
from capability_trees
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
order by field
