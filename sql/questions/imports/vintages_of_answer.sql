-- One row: a vintage in which a model has a usable answer to a task in a trial,
-- the latest first.
select vintage
from responses
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and status = 'ok'
    and task_id = $task_id
    and list_contains($models::varchar[], model)
    and trial = $trial
group by vintage
order by max(created_at) desc, vintage desc
