-- One row: a value that the given figures rest on; figures by their places.
with places as (
    select
        unnest($figures::varchar[]) as figure_id,
        unnest(range(len($figures::varchar[]))) as figure
)

select places.figure, {columns}
from places
inner join {values} using (figure_id)
order by all
