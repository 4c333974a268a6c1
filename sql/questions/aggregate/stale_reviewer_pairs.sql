-- One row: how often two reviewers decided what within a task, where their
-- agreement is not measured yet.
select
    figures.figure_id,
    figures.basis,
    found.task_id,
    found.value_a,
    found.value_b,
    found.n
from staging.reviewer_figures as figures
inner join staging.reviewer_counts as found
    on
        figures.benchmark = found.benchmark
        and figures.dataset_revision = found.dataset_revision
        and figures.review_check = found.review_check
        and figures.reviewer_a = found.reviewer_a
        and figures.reviewer_b = found.reviewer_b
anti join
    (select * from agreement_measures where method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
order by figures.figure_id, found.task_id, value_a, value_b
