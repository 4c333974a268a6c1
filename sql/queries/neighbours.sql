-- name: sampled_responses
-- One row: a stored response of the sample on which arrangements are compared: by
-- the hashes of their texts, so that the same data has the same sample.
--
-- with: revision/revision_responses
select distinct on (task_id, text) response_id
from revision_responses
inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
where status = 'ok'
    and is_admitted
    and list_contains($tasks, task_id)
order by md5(task_id || ' ' || md5(text)), response_id
limit $number;
