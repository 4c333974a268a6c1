-- One row: a measure of a difference between conditions: the difference itself
-- with its test, or the smallest that could be detected.
--
-- built as: view
-- depends on: measures
select * exclude (note, created_at)
from measures
where measure in ('difference', 'smallest_detectable')
