-- One row: a part, with the positions of its rows that were removed.
with stored as (
    select part, part_row, response_id, {moment}
    from {view}
)

select part, list(part_row order by part_row) as positions
from stored
where {is_removed}
group by part
