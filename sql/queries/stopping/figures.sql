-- One row: a task's score in a vintage of a configured model, or of its
-- imported answers, under each judging, by each score, in each split.
select split_members.split, task_scores.model, task_scores.model_config_hash, task_scores.vintage,
    task_scores.judge, task_scores.judge_config_hash, task_scores.template_hash,
    task_scores.grading, task_scores.judge_trial, task_scores.score_name, task_scores.task_id,
    task_scores.value
from task_scores
inner join split_members using (benchmark, dataset_revision, task_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and model = $model
    and model_config_hash in ($model_config_hash, 'imported')
    and vintage = $vintage
    and list_contains($tasks::varchar[], task_id)
    and value is not null
