-- One row: a run that made responses or verdicts of a data set, with its
-- configuration as it is stored: without secrets.
with of_rows as (
    select distinct run_id
    from responses
    where benchmark = $benchmark and dataset_revision = $revision
    union
    select distinct run_id
    from verdicts
    where benchmark = $benchmark and dataset_revision = $revision
)

select
    run_id,
    command,
    config,
    git_commit,
    strftime(started_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')
        as started_at,
    strftime(ended_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as ended_at,
    outcome
from runs
semi join of_rows using (run_id)
order by started_at, run_id
