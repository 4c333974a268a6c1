-- What is each task of each set of tasks worth in these model run? NULL unless
-- a trial is complete.
with places as (
    select benchmark, dataset_revision, split, task_id
    from intermediate.task_set_members
    where benchmark = $benchmark
        and is_own_hard = $is_hard
        and ($is_hard or $splits = [] or list_contains($splits::varchar[], split))
),

chosen as (
    select model_run_id, benchmark, dataset_revision from intermediate.model_runs
    where list_contains($model_runs::ubigint[], model_run_id)
),

of_runs as (
    select model_run_id, task_id, value
    from task_scores
    where list_contains($model_runs::ubigint[], model_run_id) and score_name = $score
)

select places.split, chosen.model_run_id, places.task_id,
    of_runs.task_id is not null as is_answered,
    of_runs.value
from chosen
inner join places using (benchmark, dataset_revision)
left join of_runs using (model_run_id, task_id)
order by places.split, places.task_id, chosen.model_run_id
