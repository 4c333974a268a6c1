-- One row: a ranking of unchanged model runs.
--
-- depends on: intermediate.model_runs, temp.unchanged_runs
select
    ranking_id
from intermediate.model_runs
left join temp.unchanged_runs as unchanged using (model_run_id)
group by ranking_id
having count(unchanged.model_run_id) = count(*)
