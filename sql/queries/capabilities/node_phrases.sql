-- One row: a node of a tree that counts, below the root, with its phrases: the
-- most frequent first.
with phrases as (
    select members.tree_id, members.node_id, written.phrase, count(*) as n_criteria
    from capability_members as members
    inner join capability_trees as trees using (benchmark, dataset_revision, tree_id)
    inner join criterion_capabilities as written
        using (benchmark, dataset_revision, task_id, criterion_id)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and written.criterion_hash = members.criterion_hash
        and written.model_config_hash = $model_config_hash
        and written.template_hash = $template_hash
        and written.status = 'ok'
    group by members.tree_id, members.node_id, written.phrase
)

select nodes.tree_id, nodes.node_id, nodes.parent_id,
    list(phrases.phrase order by phrases.n_criteria desc, phrases.phrase) as phrases
from phrases
inner join capability_node_rows as nodes using (tree_id, node_id)
where nodes.level > 0
group by nodes.field, nodes.tree_id, nodes.node_id, nodes.parent_id, nodes.position
order by nodes.field, nodes.position
