-- One row: a task's values in a share of agreement whose interval is missing.
select
    figures.figure_id,
    figures.basis,
    found.task_id,
    found.weight_agreed,
    found.sample_weights
from staging.review_figures as figures
inner join staging.review_values as found
    on
        figures.benchmark = found.benchmark
        and figures.dataset_revision = found.dataset_revision
        and figures.population_id = found.population_id
        and figures.breakdown = found.breakdown
        and figures.label = found.label
anti join (select * from intervals where method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
order by figures.figure_id, found.task_id
