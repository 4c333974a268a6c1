-- One row: a row whose reply is read again; whether the ledger has a reply of
-- its call, and whether one of these may be read otherwise now.
select
    looked_at.*,
    replies.cell is not null as has_reply,
    coalesce(replies.may_differ, false) as may_differ,
    bool_or(has_reply) over calls as is_kept,
    bool_or(coalesce(replies.may_differ, false)) over calls as is_doubtful
from looked_at
left join replies using (cell)
window calls as (partition by call)
