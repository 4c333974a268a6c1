-- Every response that a series stands on: those of its model in the trials that the series has in the task's field,
-- failed ones too.
select
    series.series_id,
    series.judging_id,
    responses.response_id,
    responses.status,
    responses.benchmark,
    responses.dataset_revision,
    responses.task_id,
    tasks.field,
    responses.trial,
    field_trials.n_trials
from responses
inner join series
    using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join tasks using (benchmark, dataset_revision, task_id)
inner join field_trials
    on
        series.series_id = field_trials.series_id
        and tasks.field is not distinct from field_trials.field
where
    tasks.is_admitted
    and list_contains(field_trials.trials, responses.trial)
