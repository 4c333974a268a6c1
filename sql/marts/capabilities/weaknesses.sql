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
    vintage,
    model,
    model_config_hash,
    compared_model,
    compared_vintage,
    compared_config_hash,
    value,
    compared_value,
    gap,
    gap_ci_low,
    gap_ci_high,
    is_small,
    candidates.n_tasks,
    p_confirmed,
    found_gap,
    n_tasks_found,
    p_found,
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
