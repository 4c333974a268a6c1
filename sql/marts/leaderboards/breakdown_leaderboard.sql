-- built as: view
-- depends on: staging.leaderboard_rows
select *
from staging.leaderboard_rows
where breakdown <> 'all'
