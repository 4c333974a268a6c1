-- built as: view
-- depends on: staging.leaderboard_rows
select * exclude (is_own_hard, breakdown, label, n_tasks_annotated)
from staging.leaderboard_rows
where is_own_hard and breakdown = 'all'
