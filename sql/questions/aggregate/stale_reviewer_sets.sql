-- One row: which decisions meet within a task, where the agreement of all
-- reviewers of a check is not measured yet.
select
    figures.figure_id,
    figures.basis,
    found.task_id,
    found.fail_fail,
    found.fail_pass,
    found.pass_pass
from staging.reviewer_figures as figures
inner join staging.reviewer_sets as found
    on
        figures.benchmark = found.benchmark
        and figures.dataset_revision = found.dataset_revision
        and figures.review_check = found.review_check
        and figures.reviewer_b is null
anti join
    (select * from reliability_measures where method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
order by figures.figure_id, found.task_id
