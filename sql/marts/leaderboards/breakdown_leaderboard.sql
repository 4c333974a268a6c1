-- built as: view
-- depends on: intermediate.leaderboard_rows
select * exclude (model_run_id, figure_id)
from intermediate.leaderboard_rows
where breakdown <> 'all'
