-- name: quality
-- Every expectation of the last run of each suite of checks, the failed ones
-- first, with some of the keys of the rows that failed.
select
    if(success, 'passed', 'failed') as outcome,
    severity as policy,
    suite,
    check_name,
    -- An expectation that no longer exists has only the name of its check.
    coalesce(expected.meaning, replace(check_name, '_', ' ')) as meaning,
    expectation,
    table_name,
    n_evaluated,
    n_failed,
    failing_keys[:5] as some_keys,
    if(n_failed > 5, n_failed - 5, null) as n_more,
    run_id,
    created_at
from checks
left join $expectations as expected
    using (check_name, expectation)
where benchmark = $benchmark and dataset_revision = $dataset_revision
qualify created_at = max(created_at) over (partition by suite)
order by success, list_position(['fail', 'quarantine', 'warn'], severity) nulls last,
    list_position(['ingest', 'sample', 'judge'], suite) nulls last, suite, check_name, expectation,
    table_name;

-- name: refusals
-- The tasks that the latest check refused, with the reasons; no score includes them.
--
-- with: figures/shared/shown_tasks
select
    quarantine.check_name,
    quarantine.task_id,
    array_to_string(tasks.splits, ', ') as splits,
    quarantine.severity as policy,
    quarantine.detail
from quarantine
left join tasks using (benchmark, dataset_revision, task_id)
semi join shown_tasks using (task_id)
where benchmark = $benchmark and dataset_revision = $dataset_revision
order by check_name, task_id;
