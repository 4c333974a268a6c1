-- One row: a measure of a difference between conditions: the difference itself
-- with its test, or the smallest that could be detected.
--
-- built as: view
-- depends on: measures
select
    figure_id,
    basis,
    method,
    measure,
    value,
    ci_low,
    ci_high,
    p_value,
    n,
    is_small
from measures
where measure in ('difference', 'smallest_detectable')
