-- One row: a usable answer of a model in a vintage to an admitted task, with
-- the number of its verdicts that can be scored.
select responses.response_id, count(*) as n_criteria
from responses
inner join tasks using (benchmark, dataset_revision, task_id)
inner join criteria using (benchmark, dataset_revision, task_id)
where responses.benchmark = $benchmark
    and responses.dataset_revision = $revision
    and responses.model = $model
    and responses.vintage = $vintage
    and responses.status = 'ok'
    and tasks.is_admitted
    and criteria.weight is not null
group by responses.response_id
order by responses.response_id
