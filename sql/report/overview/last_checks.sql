-- What the last run of each suite of checks found that does not hold.
select suite, check_name, expectation, severity, n_evaluated, n_failed
from checks
where benchmark = $benchmark and dataset_revision = $revision
qualify created_at = max(created_at) over (partition by suite) and not success
order by severity <> 'quarantine', suite, check_name, expectation
