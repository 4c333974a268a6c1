-- What the answers to some tasks add up to under every judging, with bounds where something is undecided, as JSON.
select
    score_parts.task_id,
    entries.entry,
    to_json(list({
        trial: score_parts.trial,
        judging: judgings.judging,
        value: score_parts.value,
        value_lower: score_parts.value_lower,
        value_upper: score_parts.value_upper,
        points: response_parts.points,
        points_lower: response_parts.points + response_parts.undecided_negative,
        points_upper: response_parts.points + response_parts.undecided_positive,
        positive: response_parts.positive,
        n_met: response_parts.n_met,
        n_decided: response_parts.n_decided,
        n_wanted: response_parts.n_wanted
    } order by score_parts.trial, judgings.judging)) as points
from score_parts
inner join response_parts using (series_id, response_id, cut, label)
inner join series using (series_id)
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    score_parts.cut = 'all'
    and score_parts.score_name = $score
    and series.benchmark = $benchmark
    and series.dataset_revision = $revision
    and score_parts.task_id in (select unnest($tasks::varchar[]))
group by score_parts.task_id, entries.entry
order by score_parts.task_id, entries.entry
