-- Some responses with their criteria, a row a criterion.
select responses.response_id,
    responses.task_id as task,
    responses.model, responses.trial, responses.vintage,
    criteria.criterion_id as criterion,
    tasks.field, tasks.topic,
    responses.text as response,
    criteria.title
from responses
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id)
where responses.benchmark = $benchmark
    and responses.dataset_revision = $revision
    and list_contains($response_ids::varchar[], responses.response_id)
order by responses.response_id, criteria.position
