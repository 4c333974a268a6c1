-- The length of a response, and its scores (figure 7 counts only letters and
-- digits).
--
-- built as: view
-- depends on: responses, scores, tasks
select scores.*, tasks.field, responses.chars_alnum, responses.completion_tokens
from scores
inner join responses using (response_id)
inner join tasks
    on responses.benchmark = tasks.benchmark
        and responses.dataset_revision = tasks.dataset_revision
        and responses.task_id = tasks.task_id
where responses.status = 'ok'
