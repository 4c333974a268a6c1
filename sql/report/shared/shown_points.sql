-- One row: what a shown answer adds up to under a judging, with bounds where
-- something is undecided.
-- begins with: entries, judgings
select response_scores.task_id, entries.entry, response_id, response_scores.trial, judgings.judging,
    response_scores.value, response_scores.value_lower, response_scores.value_upper,
    response_points.points, response_points.undecided_negative, response_points.undecided_positive,
    response_points.positive, response_points.n_met, response_points.n_decided,
    response_points.n_wanted
from staging.response_scores
inner join staging.response_points using (model_run_id, response_id, breakdown, label)
inner join staging.model_runs using (model_run_id)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where response_scores.breakdown = 'all'
    and response_scores.score_name = $score
    and model_runs.benchmark = $benchmark
    and model_runs.dataset_revision = $revision
