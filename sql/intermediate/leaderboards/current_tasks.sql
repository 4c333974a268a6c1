-- One row: a task with a split on which the vintage of a model run is the current one
-- (`latest_splits`), and whether it is also of the current configurations (`is_current`).
--
-- Of a task in several splits, the one with most tasks determines `is_latest`. If a label
-- of a model or judge has several configurations, the one that was used last is current:
-- its responses, or its verdicts, are the newest.
--
-- built as: table
-- depends on: intermediate.current_vintages, intermediate.model_runs,
--     intermediate.task_set_members
with members as (
    select task_id, task_set_id, split,
        row_number() over (
            partition by benchmark, dataset_revision, task_id
            order by n_tasks_of_set desc, split
        ) = 1 as is_main
    from intermediate.task_set_members
    where not is_own_hard
),

configured as (
    select model_run_id,
        judging_id = arg_max(judging_id, last_verdict_at) over (
            partition by benchmark, dataset_revision, judge, grading, judge_trial
        )
        and model_config_hash = arg_max(model_config_hash, last_response_at) over (
            partition by benchmark, dataset_revision, judging_id, model
        ) as is_used_last
    from intermediate.model_runs
)

select
    current_vintages.model_run_id,
    members.task_id,
    list(members.split order by members.split) as latest_splits,
    bool_or(members.is_main) as is_latest,
    bool_or(members.is_main and configured.is_used_last) as is_current
from intermediate.current_vintages
inner join members using (task_set_id)
inner join configured using (model_run_id)
where current_vintages.is_latest
group by all
