-- Every response that a series stands on: those of its model in the trials that the series has, failed ones too.
select
    series.series_id,
    series.judging_id,
    responses.response_id,
    responses.status,
    responses.benchmark,
    responses.dataset_revision,
    responses.task_id,
    responses.trial,
    series.n_trials
from responses
inner join series
    using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted and list_contains(series.trials, responses.trial)
