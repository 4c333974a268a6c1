-- One row: a model run in a ranking.
--
-- A ranking has the model runs of one vintage, or the latest of every model,
-- whatever its vintage: nightly models are then ranked with all others.
--
-- built as: view
-- depends on: intermediate.model_runs
with own as (
    select model_run_id, ranking_id, is_latest,
        hash(benchmark, dataset_revision, 'latest', judging_id) as latest_id,
        count(distinct vintage) over (partition by latest_id) as n_vintages
    from intermediate.model_runs
)

select model_run_id, ranking_id, true as is_own, is_latest and n_vintages = 1 as is_of_latest
from own
union all
select model_run_id, latest_id as ranking_id, false as is_own, true as is_of_latest
from own
where is_latest and n_vintages > 1
