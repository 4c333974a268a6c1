-- One row: a difference of two models that has no debiased figure yet for what
-- it rests on.
select
    figure_id,
    basis,
    figure_a,
    figure_b
from staging.debiased_pairs
anti join (select * from debiased_measures where method = $method) as measured
    using (figure_id, basis)
order by figure_id
