-- One row: a judged response to a task of a task set (a split or an own hard
-- selection), with its cost and the cost of judging it.
--
-- built as: view
-- depends on: intermediate.model_runs, intermediate.response_points,
--     intermediate.task_set_members, responses
select model_runs.benchmark, model_runs.dataset_revision, model_runs.model,
    model_runs.model_config_hash, model_runs.vintage, model_runs.judge,
    model_runs.judge_config_hash, model_runs.template_hash, model_runs.grading,
    model_runs.judge_trial, task_set_members.split, task_set_members.is_own_hard,
    response_points.response_id,
    responses.cost_usd as response_usd,
    response_points.cost_usd as verdicts_usd,
    response_points.is_cost_unknown as is_verdicts_usd_unknown
from intermediate.response_points
inner join responses using (response_id)
inner join intermediate.model_runs using (model_run_id)
inner join intermediate.task_set_members
    on model_runs.benchmark = task_set_members.benchmark
        and model_runs.dataset_revision = task_set_members.dataset_revision
        and response_points.task_id = task_set_members.task_id
where response_points.breakdown = 'all'
