-- One row: a task's score for a model under the judging that selects hard
-- tasks, with its complete trials; of a label that was configured in several
-- ways, the way that was sampled last.
with latest as (
    select model, arg_max(model_run_id, created_at) as model_run_id
    from responses
    inner join intermediate.model_runs using (benchmark, dataset_revision, model, model_config_hash)
    where model_runs.ranking_id = $ranking
    group by model
)

select latest.model, task_values.task_id, task_values.value, task_values.complete_trials,
    task_values.trial_values
from intermediate.task_values
inner join latest using (model_run_id)
where task_values.breakdown = 'all'
    and task_values.score_name = $score
    and task_values.value is not null
