-- The score of each model in each node of the trees, under each judge.
-- begins with: entries, judgings
select judgings.judging,
    entries.entry as model,
    scores.field, scores.level,
    coalesce(scores.name, '(no name)') as capability,
    scores.value, scores.ci_low, scores.ci_high, scores.is_small, scores.n_tasks, scores.n_criteria,
    scores.n_decided, scores.node_id
from capability_scores as scores
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where scores.benchmark = $benchmark and scores.dataset_revision = $revision
order by scores.field, scores.level, capability, scores.node_id, judgings.judging <> $main,
    judgings.judging, scores.value desc, entries.entry
