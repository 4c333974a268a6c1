-- One row: two graders under one label whose decisions have no measures yet.
select
    benchmark,
    dataset_revision,
    grader_a,
    grader_b,
    breakdown,
    label,
    figure_id,
    basis
from staging.agreement_figures
anti join (
    select * from agreement_measures where method = $method
) as measured using (figure_id, basis)
order by benchmark, dataset_revision, grader_a, grader_b, breakdown, label
