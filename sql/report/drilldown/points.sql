-- What the answers to some tasks add up to under every judging, with bounds
-- where something is undecided, as JSON.
-- begins with: entries, judgings
select
    response_scores.task_id,
    entries.entry,
    to_json(list({
        trial: response_scores.trial,
        judging: judgings.judging,
        value: response_scores.value,
        value_lower: response_scores.value_lower,
        value_upper: response_scores.value_upper,
        points: response_points.points,
        points_lower:
            response_points.points + response_points.undecided_negative,
        points_upper:
            response_points.points + response_points.undecided_positive,
        positive: response_points.positive,
        n_met: response_points.n_met,
        n_decided: response_points.n_decided,
        n_wanted: response_points.n_wanted
    } order by response_scores.trial, judgings.judging)) as points
from staging.response_scores
inner join staging.response_points
    using (model_run_id, response_id, breakdown, label)
inner join staging.model_runs using (model_run_id)
inner join entries
    using (model, model_config_hash, vintage)
inner join judgings
    using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    response_scores.breakdown = 'all'
    and response_scores.score_name = $score
    and model_runs.benchmark = $benchmark
    and model_runs.dataset_revision = $revision
    and response_scores.task_id in (select unnest($tasks::varchar[]))
group by response_scores.task_id, entries.entry
order by response_scores.task_id, entries.entry
