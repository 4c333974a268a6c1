-- One row: how many rows there are, and how many whose reply is not kept. An
-- empty reply, as it came or unreadable for that, is in the ledger without a
-- text, and is as it was.
select
    count(*) as n_rows,
    count(*) filter (
        not is_kept and status in ('ok', 'met', 'partial', 'unmet')
    ) as n_lost
from reread_rows
