-- One row: a judged response to a task of a task set (a split or an own hard
-- selection), with its cost and the cost of judging it.
--
-- built as: view
-- depends on: intermediate.model_runs, intermediate.response_points,
--     intermediate.task_set_members, responses
select
    model_run_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    model_runs.vintage,
    model_runs.model,
    model_runs.model_config_hash,
    split,
    is_own_hard,
    responses.cost_usd as response_usd,
    response_points.cost_usd as verdicts_usd,
    is_cost_unknown as is_verdicts_usd_unknown
from intermediate.response_points
inner join intermediate.model_runs using (model_run_id)
inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
inner join responses using (response_id)
where breakdown = 'all'
