-- One row: a set of graders under one label whose decisions have no measures
-- yet.
select
    benchmark,
    dataset_revision,
    grader_set,
    breakdown,
    label,
    figure_id,
    basis
from grader_reliability
anti join (
    select * from reliability_measures where method = $method
) as measured using (figure_id, basis)
order by benchmark, dataset_revision, grader_set, breakdown, label
