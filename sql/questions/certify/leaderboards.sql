-- One row: a row of a leaderboard of scores, with all its figures.
select
    * exclude (benchmark, dataset_revision)
    replace (
        strftime(
            first_answered_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ'
        ) as first_answered_at
    )
from {leaderboard}
where benchmark = $benchmark and dataset_revision = $revision
order by all
