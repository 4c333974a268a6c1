-- One row: a verdict on a member of a control set whose reply is read again.
select
    *,
    verdict_id as cell,
    hash(verdict_id) as call
from control_verdicts
where
    verdict_id is not null
    and (value is not null or status = 'parse_error')
