-- One row: a difference between conditions that has no test yet for the values
-- that it rests on; those with equally many tasks together.
select distinct
    figures.figure_id,
    figures.basis,
    figures.n_tasks
from staging.condition_figures as figures
anti join (
    select * from condition_tests where method = $method
) as tested using (figure_id, basis)
where
    figures.n_tasks > 0
    and ($benchmark::varchar is null or figures.benchmark = $benchmark)
order by figures.n_tasks, figures.figure_id
