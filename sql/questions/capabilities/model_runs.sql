-- One row: a model run under a judging, the latest of its model.
select
    model_run_id::varchar as model_run_id,
    model,
    model_config_hash,
    vintage
from staging.model_runs
where judging_id::varchar = $judging_id and is_latest
order by model, model_config_hash, vintage
