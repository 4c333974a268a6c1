-- One row: a part of a run of parts, with the places of its rows that another
-- row with the same key comes before.
with replaced as (
    select part, part_row
    from run
    qualify row_number() over (partition by {key} order by {order}) > 1
)

select
    part,
    list(part_row order by part_row) as places
from replaced
group by part
