-- Failed criteria of each category, as a share of its decided criteria
-- (`failure_rate`), and of all failed criteria (`failure_share`, which adds up to
-- 1). A positive criterion fails if it is not met, a negative one if it is met; a
-- partly met one does not fail. Published figures of this name may differ: means
-- over the tasks with a failure, which count a mistake that was not made as one.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.model_runs,
--     intermediate.response_points, intermediate.task_set_members
with counted as (
    select model_run_id, task_set_id, split, is_own_hard,
        points.label as category,
        sum(n_weighted)::bigint as n_decided,
        sum(n_failed)::bigint as n_failed
    from intermediate.response_points as points
    inner join intermediate.model_runs using (model_run_id)
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    where points.breakdown = 'category' and is_counted
    group by all
    having n_decided > 0
)

select
    model_runs.benchmark,
    model_runs.dataset_revision,
    counted.split,
    counted.is_own_hard,
    model_runs.judge,
    model_runs.judge_config_hash,
    model_runs.template_hash,
    model_runs.grading,
    model_runs.judge_trial,
    model_runs.vintage,
    model_runs.model,
    model_runs.model_config_hash,
    current_vintages.is_latest,
    counted.category,
    counted.n_decided,
    counted.n_failed,
    n_failed / n_decided as failure_rate,
    n_failed / nullif(sum(n_failed) over (partition by model_run_id, task_set_id), 0)
        as failure_share
from counted
inner join intermediate.model_runs using (model_run_id)
inner join intermediate.current_vintages using (task_set_id, model_run_id)
