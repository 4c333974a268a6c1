-- name: last_checks
-- One row: an expectation of the last run of each suite of checks, failed ones
-- first.
select suite, check_name, expectation, severity, success, n_evaluated, n_failed
from checks
where benchmark = $benchmark and dataset_revision = $revision
qualify created_at = max(created_at) over (partition by suite)
order by success, suite, check_name, expectation;
