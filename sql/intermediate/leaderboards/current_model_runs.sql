-- One row: a model run, with a flag for tables without splits: true if it is the model's
-- current one on the splits with most tasks.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.model_runs
with current_tasks as (
    select model_run_id, sum(n_tasks_wanted) as n_tasks
    from intermediate.current_vintages
    where is_latest and not is_own_hard
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
    row_number() over (
        partition by benchmark, dataset_revision, judging_id, model, model_config_hash
        order by n_tasks desc nulls last, first_response_at desc, vintage desc
    ) = 1 as is_latest
from intermediate.model_runs
left join current_tasks using (model_run_id)
