-- One row: a model run that rests on a random part of the tasks of a split,
-- which was chosen by what it showed.
select distinct mean_scores.model_run_id
from intermediate.random_parts
inner join intermediate.mean_scores using (figure_id)
where list_contains($model_runs::ubigint[], mean_scores.model_run_id)
order by mean_scores.model_run_id
