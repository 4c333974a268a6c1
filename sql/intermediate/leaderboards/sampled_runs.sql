-- One row: a configured model, sampled in one vintage.
--
-- depends on: responses, tasks
select
    benchmark,
    dataset_revision,
    model,
    model_config_hash,
    vintage,
    list_sort(list(distinct trial)) as sampled_trials,
    min(created_at) as first_sampled_at,
    max(created_at) as last_response_at
from responses
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
group by all
