-- One row: the mean length of a model run's responses to a task, over the trials
-- of its score.
--
-- depends on: intermediate.response_points, responses
select
    response_points.model_run_id,
    response_points.task_id,
    avg(responses.chars_alnum) as mean_chars_alnum,
    avg(responses.completion_tokens) as mean_completion_tokens
from intermediate.response_points
inner join responses using (response_id)
where response_points.breakdown = 'all'
    and response_points.is_counted
    and responses.status = 'ok'
    and response_points.n_decided = response_points.n_wanted
group by all
