-- One row: a model run, with a flag for tables without splits: true if it is the model's
-- current one on most tasks.
--
-- built as: view
-- depends on: intermediate.current_tasks, intermediate.model_runs
with task_counts as (
    select model_run_id, count(*) as n_tasks
    from intermediate.current_tasks
    group by model_run_id
)

select
    model_run_id,
    ranking_id,
    judging_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    n_trials,
    first_response_at,
    last_response_at,
    row_number() over (
        partition by benchmark, dataset_revision, judging_id, model, model_config_hash
        order by n_tasks desc nulls last, first_response_at desc, vintage desc
    ) = 1 as is_latest
from intermediate.model_runs
left join task_counts using (model_run_id)
