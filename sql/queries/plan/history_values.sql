-- One row: a task's latest value in each vintage of a model's label, of any
-- revision and configuration, under a judge's label.
select task_scores.model, task_scores.vintage, task_scores.task_id,
    min(model_runs.first_answered_at) as answered_at,
    arg_max(task_scores.value, model_runs.first_answered_at) as value
from task_scores
inner join intermediate.model_runs as model_runs using (model_run_id)
where task_scores.benchmark = $benchmark
    and task_scores.judge = $judge
    and task_scores.judge_trial = 1
    and task_scores.grading = $grading
    and task_scores.score_name = $score
    and list_contains($models::varchar[], task_scores.model)
    and task_scores.value is not null
group by task_scores.model, task_scores.vintage, task_scores.task_id
order by answered_at
