-- Each task's score for each entry under each judging, the mean over its
-- trials; bounds where it is undecided.
-- begins with: entries, judgings
select judgings.judging, entries.entry, task_scores.task_id, task_scores.value,
    task_scores.value_lower, task_scores.value_upper
from task_scores
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision and score_name = $score
order by judging, entry, task_id
