-- One row: a sampled answer whose reply is read again.
--
-- Rows that the same call answered share its reply: only the one that the call
-- was made for is named in the ledger; the others have the same time that the
-- call took.
select
    *,
    response_id as cell,
    hash(
        conversation_id,
        trial,
        vintage,
        coalesce(latency_s::varchar, response_id)
    ) as call
from responses
where source = 'sampled' and status in ('ok', 'empty')
