-- name: sampled_responses
-- One row: a stored response of the sample on which arrangements are compared: by
-- the hashes of their texts, so that the same data has the same sample.
select distinct on (task_id, text) response_id
from responses
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and status = 'ok'
    and is_admitted
    and list_contains($tasks::varchar[], task_id)
order by md5(task_id || ' ' || md5(text)), response_id
limit $number;
