-- The length of a response, and its scores (figure 7 counts only letters and
-- digits).
--
-- built as: view
-- depends on: responses, scores, tasks
select scores.*, tasks.field, responses.chars_alnum, responses.completion_tokens
from scores
inner join tasks using (benchmark, dataset_revision, task_id)
inner join responses using (response_id)
where responses.status = 'ok'
