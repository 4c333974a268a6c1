-- name: stale
-- One row: a figure without a measure of its current values; figures that are
-- computed together follow each other.
select distinct {columns}
from {figures} as figures
anti join (from measures where measure = $measure and method = $method)
    using (figure_id, basis)
where figures.basis is not null and {condition}
order by all;

-- name: values
-- One row: a value of one of the given figures, which are named by their indices.
with figure_positions as (
    select
        unnest($figures::varchar[]) as figure_id,
        unnest(range(len($figures))) as figure
)

select figure_positions.figure, {columns}
from figure_positions
inner join {values} using (figure_id)
order by all;
