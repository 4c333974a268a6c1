-- built as: view
-- depends on: intermediate.leaderboard_rows
select *
from intermediate.leaderboard_rows
where breakdown <> 'all'
