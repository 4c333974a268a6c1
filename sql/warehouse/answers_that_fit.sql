-- One row: a stored answer that fits a condition and is not removed, the
-- largest first.
select distinct {columns}
from answers
where ({condition}) and not {is_removed}
order by chars_alnum desc nulls last, response_id
