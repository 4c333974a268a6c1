-- The confirmed weaknesses of each model under each judge: beside its own other
-- criteria first, the largest difference first.
-- begins with: entries, judgings
select judgings.judging,
    entries.entry as model,
    weaknesses.field,
    coalesce(weaknesses.name, '(no name)') as capability,
    coalesce(weaknesses.compared_model, 'its other criteria') as compared_with,
    weaknesses.value, weaknesses.compared_value,
    weaknesses.gap as difference,
    weaknesses.gap_ci_low as difference_low,
    weaknesses.gap_ci_high as difference_high,
    weaknesses.p_confirmed, weaknesses.n_tasks, weaknesses.is_small, weaknesses.found_gap,
    weaknesses.p_found, weaknesses.n_tasks_found, weaknesses.node_id
from weaknesses
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where weaknesses.benchmark = $benchmark and weaknesses.dataset_revision = $revision
order by judgings.judging <> $main, judgings.judging, weaknesses.compared_model is not null,
    entries.entry, weaknesses.compared_model, weaknesses.gap, weaknesses.node_id
