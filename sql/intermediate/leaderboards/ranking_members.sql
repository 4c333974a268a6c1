-- One row: a model run in a ranking on a task set.
--
-- A ranking has the model runs of one vintage, or the current one of every model,
-- whatever its vintage: nightly models are then ranked with all others.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.model_runs
with members as (
    select task_set_id, model_run_id, model_runs.ranking_id, is_latest,
        hash(
            vintages.benchmark, vintages.dataset_revision, 'latest', vintages.judging_id
        ) as latest_id,
        count(distinct vintages.vintage) over (partition by task_set_id, latest_id) as n_vintages
    from intermediate.current_vintages as vintages
    inner join intermediate.model_runs using (model_run_id)
)

select
    task_set_id,
    model_run_id,
    ranking_id,
    true as is_own,
    is_latest and n_vintages = 1 as is_of_latest
from members
union all
select
    task_set_id,
    model_run_id,
    latest_id as ranking_id,
    false as is_own,
    true as is_of_latest
from members
where is_latest and n_vintages > 1
