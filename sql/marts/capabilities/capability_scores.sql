-- built as: view
-- depends on: capability_measures, capability_analyses, capability_nodes
select
    tree_id,
    node_id,
    measures.benchmark,
    measures.dataset_revision,
    measures.judge,
    measures.judge_config_hash,
    measures.template_hash,
    measures.grading,
    measures.judge_trial,
    measures.vintage,
    measures.model,
    measures.model_config_hash,
    measures.value,
    measures.ci_low,
    measures.ci_high,
    measures.is_small,
    measures.n_tasks,
    measures.n_criteria,
    measures.n_decided,
    measures.created_at,
    nodes.field,
    nodes.parent_id,
    nodes.level,
    nodes.name
from capability_measures as measures
inner join capability_analyses using (analysis_id)
inner join capability_nodes as nodes using (tree_id, node_id)
