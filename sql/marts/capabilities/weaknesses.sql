-- built as: view
-- depends on: weakness_candidates, capability_analyses, capability_nodes
select
    tree_id,
    node_id,
    candidates.benchmark,
    candidates.dataset_revision,
    candidates.judge,
    candidates.judge_config_hash,
    candidates.template_hash,
    candidates.grading,
    candidates.judge_trial,
    candidates.vintage,
    candidates.model,
    candidates.model_config_hash,
    candidates.compared_model,
    candidates.compared_vintage,
    candidates.compared_config_hash,
    candidates.value,
    candidates.compared_value,
    candidates.gap,
    candidates.gap_ci_low,
    candidates.gap_ci_high,
    candidates.is_small,
    candidates.n_tasks,
    candidates.p_confirmed,
    candidates.found_gap,
    candidates.n_tasks_found,
    candidates.p_found,
    candidates.method,
    candidates.created_at,
    nodes.field,
    nodes.parent_id,
    nodes.level,
    nodes.name
from weakness_candidates as candidates
inner join capability_analyses using (analysis_id)
inner join capability_nodes as nodes using (tree_id, node_id)
where is_confirmed
