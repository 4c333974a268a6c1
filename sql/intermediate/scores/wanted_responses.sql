-- One row: a response of a model run, in one of its trials, failed or not. Only
-- counted trials are part of its score and coverage.
--
-- built as: view
-- depends on: intermediate.model_runs, responses, tasks
select
    model_run_id,
    judging_id,
    response_id,
    status,
    benchmark,
    dataset_revision,
    task_id,
    trial,
    list_contains(model_runs.counted_trials, responses.trial) as is_counted
from responses
inner join intermediate.model_runs
    using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted and list_contains(model_runs.trials, responses.trial)
