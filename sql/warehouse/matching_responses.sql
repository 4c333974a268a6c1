-- One row: a stored response that meets a condition and is not removed, the
-- largest first.
select distinct {columns}
from stored_responses
where ({condition}) and not {is_removed}
order by chars_alnum desc nulls last, response_id
