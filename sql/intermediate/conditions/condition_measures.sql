-- One row: the interval and the test of a difference between conditions, with a
-- fingerprint of the values that they belong to.
--
-- built as: view
-- depends on: intermediate.condition_tests
select
    tests.figure_id,
    tests.basis,
    tests.method,
    tests.ci_low,
    tests.ci_high,
    tests.p_value,
    detectable.value as smallest_detectable,
    tests.n as n_differing,
    tests.is_small
from intermediate.condition_tests as tests
inner join intermediate.condition_tests as detectable using (figure_id, basis)
where tests.measure = 'difference' and detectable.measure = 'smallest_detectable'
