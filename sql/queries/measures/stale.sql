-- One row: a figure that has no measure yet for the values that it rests on;
-- those that are computed together follow each other.
select distinct {columns}
from {figures} as figures
anti join (from measures where measure = $measure and method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
where figures.basis is not null and {condition}
order by all
