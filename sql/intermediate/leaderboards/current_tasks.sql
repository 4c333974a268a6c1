-- One row: a task on which the vintage of a model run is the current one, and whether
-- it is also of the current configurations (`is_current`).
--
-- A task of several splits follows the one with most tasks. If a label of a model or
-- judge has several configurations, the one that was used last is current: its
-- responses, or its verdicts, are the newest.
--
-- built as: table
-- depends on: intermediate.current_vintages, intermediate.judge_configs,
--     intermediate.model_runs, intermediate.task_set_members
with main_splits as (
    select task_id, task_set_id
    from intermediate.task_set_members
    where not is_own_hard
    qualify row_number() over (
        partition by benchmark, dataset_revision, task_id
        order by n_tasks_of_set desc, split
    ) = 1
),

configured as (
    select model_run_id,
        judging_id = arg_max(judging_id, last_verdict_at) over (
            partition by benchmark, dataset_revision, judge, grading, judge_trial
        )
        and model_config_hash = arg_max(model_config_hash, first_response_at) over (
            partition by benchmark, dataset_revision, judging_id, model
        ) as is_used_last
    from intermediate.model_runs
    inner join intermediate.judge_configs
        using (judging_id, judge, judge_config_hash, template_hash, grading, judge_trial)
)

select current_vintages.model_run_id, main_splits.task_id, configured.is_used_last as is_current
from intermediate.current_vintages
inner join main_splits using (task_set_id)
inner join configured using (model_run_id)
where current_vintages.is_latest
