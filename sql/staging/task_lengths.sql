-- The length of a series' answers to a task, the mean over the trials that its
-- score rests on.
select
    response_parts.series_id,
    response_parts.task_id,
    avg(responses.chars_alnum) as mean_chars_alnum,
    avg(responses.completion_tokens) as mean_completion_tokens
from response_parts
inner join responses using (response_id)
where
    response_parts.cut = 'all'
    and responses.status = 'ok'
    and response_parts.n_decided = response_parts.n_wanted
group by all
