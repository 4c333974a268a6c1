-- One row: how a check and a disagreement meet within a task, where it is not
-- measured yet.
select
    figures.figure_id,
    figures.basis,
    found.task_id,
    found.fail_disagree,
    found.fail_agree,
    found.pass_disagree,
    found.pass_agree
from staging.prediction_figures as figures
inner join staging.check_outcomes as found
    on
        figures.benchmark = found.benchmark
        and figures.dataset_revision = found.dataset_revision
        and figures.source = found.source
        and figures.reviewer = found.reviewer
        and figures.review_check = found.review_check
        and figures.outcome = found.outcome
anti join
    (select * from prediction_measures where method = $method) as measured
    on figures.figure_id = measured.figure_id and figures.basis = measured.basis
order by figures.figure_id, found.task_id
