-- One row: a response of a model run to one of some tasks, a failed one too.
select responses.*, tasks.field, tasks.topic, tasks.expert, tasks.splits, tasks.decision_types,
    tasks.economic_pathways
from intermediate.wanted_responses as wanted
inner join responses using (response_id)
inner join tasks
    on wanted.benchmark = tasks.benchmark
        and wanted.dataset_revision = tasks.dataset_revision
        and wanted.task_id = tasks.task_id
where wanted.model_run_id = $model_run and list_contains($task_ids::varchar[], wanted.task_id)
order by responses.task_id, responses.trial, responses.response_id
