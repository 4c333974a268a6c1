-- One row: how many tasks a model has answers to in a trial, imported ones or
-- all, with how many criteria.
select model, trial, count(*) as n_tasks, sum(n_criteria)::bigint as n_criteria
from responses
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and vintage = $vintage
    and list_contains($tasks::varchar[], task_id)
    and ($is_any_trial or list_contains($trials::bigint[], trial))
    and ($is_any_source or source = 'imported')
group by all
order by all
