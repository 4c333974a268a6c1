-- One row: a row of a view of parts that another row with the same key replaces.
--
-- Only duplicate keys are sorted: they are few, and all keys would not fit into
-- memory. Two keys with the same hash do no harm.
with repeated as (
    select hash({key}) as key_hash
    from {view}
    where {condition}
    group by key_hash
    having count(*) > 1
)

select part, part_row
from {view}
where ({condition}) and hash({key}) in (select key_hash from repeated)
qualify row_number() over (partition by {key} order by {order}) > 1
