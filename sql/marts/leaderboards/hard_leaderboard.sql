-- built as: view
-- depends on: intermediate.leaderboard_rows
select * exclude (model_run_id, figure_id, is_own_hard, breakdown, label, n_tasks_annotated)
from intermediate.leaderboard_rows
where is_own_hard and breakdown = 'all'
