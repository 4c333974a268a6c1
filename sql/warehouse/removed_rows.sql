-- One row: a part with the places of its rows that were removed.
with answers as (
    select part, part_row, response_id, {moment}
    from {view}
)

select part, list(part_row order by part_row) as places
from answers
where {is_removed}
group by part
