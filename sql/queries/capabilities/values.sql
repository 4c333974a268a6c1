-- One row: a criterion in a model run, with its mean value over the trials in
-- which it is decided; NULL without one.
select
    dense_rank() over (order by model_runs.model, model_runs.model_config_hash, model_runs.vintage)
    - 1 as model_run,
    members.place,
    avg(judged.value) as value,
    any_value(judged.weight) as weight
from intermediate.judged_criteria as judged
inner join intermediate.model_runs using (model_run_id)
inner join (
    select task_id, criterion_id, row_number() over (order by task_id, criterion_id) - 1 as place
    from capability_members
    where tree_id = $tree_id and is_leaf
) as members
    on judged.task_id = members.task_id and judged.criterion_id = members.criterion_id
where model_runs.judging_id::varchar = $judging_id
    and model_runs.benchmark = $benchmark
    and model_runs.dataset_revision = $dataset_revision
    and model_runs.is_latest
group by model_runs.model, model_runs.model_config_hash, model_runs.vintage, members.place
order by all
