-- One row: a confirmed weakness of a model, the largest gap first: beside its
-- own other criteria, or beside another model.
select
    weaknesses.*,
    parents.name as parent_name
from weaknesses
left join capability_nodes as parents
    on
        weaknesses.tree_id = parents.tree_id
        and weaknesses.parent_id = parents.node_id
where
    weaknesses.benchmark = $benchmark
    and weaknesses.dataset_revision = $revision
    and weaknesses.model = $model
    and ($judges = [] or list_contains($judges::varchar[], weaknesses.judge))
    and weaknesses.compared_model is not distinct from $than::varchar
    and weaknesses.grading <> 'ternary_as_binary'
order by
    weaknesses.judge, weaknesses.judge_trial, weaknesses.vintage,
    weaknesses.gap, weaknesses.node_id
