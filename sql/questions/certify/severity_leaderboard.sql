-- One row: a model's critical mistakes on a task set.
select * exclude (benchmark, dataset_revision)
from severity_leaderboard
where benchmark = $benchmark and dataset_revision = $revision
order by all
