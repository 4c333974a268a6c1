-- name: stale
-- One row: a figure that has no measure yet for the values that it rests on;
-- those that are computed together follow each other.
select distinct {columns}
from {figures} as figures
anti join (from measures where measure = $measure and method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
where figures.basis is not null and {condition}
order by all;

-- name: values
-- One row: a value that the given figures rest on; figures by their places.
with figure_positions as (
    select
        unnest($figures::varchar[]) as figure_id,
        unnest(range(len($figures::varchar[]))) as figure
)

select figure_positions.figure, {columns}
from figure_positions
inner join {values} using (figure_id)
order by all;
