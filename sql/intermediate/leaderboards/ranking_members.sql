-- One row: a model run in a ranking on a task set.
--
-- A ranking has the model runs of one vintage, or the current one of every model,
-- whatever its vintage: nightly models are then ranked with all others.
--
-- built as: view
-- depends on: intermediate.current_vintages, intermediate.model_runs
with own as (
    select current_vintages.task_set_id, model_run_id, model_runs.ranking_id,
        current_vintages.is_latest,
        hash(benchmark, dataset_revision, 'latest', model_runs.judging_id) as latest_id,
        count(distinct model_runs.vintage) over (partition by task_set_id, latest_id) as n_vintages
    from intermediate.current_vintages
    inner join intermediate.model_runs using (model_run_id)
)

select task_set_id, model_run_id, ranking_id, true as is_own,
    is_latest and n_vintages = 1 as is_of_latest
from own
union all
select task_set_id, model_run_id, latest_id as ranking_id, false as is_own, true as is_of_latest
from own
where is_latest and n_vintages > 1
