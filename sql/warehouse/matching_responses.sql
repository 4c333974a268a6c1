-- One row: a stored response that meets a condition and is not removed, the
-- largest first.
select distinct response_id, benchmark, model, task_id, trial, vintage, source, status, chars_alnum
from stored_responses
where ({condition}) and not {is_removed}
order by chars_alnum desc nulls last, response_id
