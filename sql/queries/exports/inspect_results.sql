-- One row: a score of a model run on a split, as on the leaderboard, with its
-- standard error over tasks.
with members as (
    select split, task_id
    from intermediate.task_set_members
    where benchmark = $benchmark
        and dataset_revision = $revision
        and not is_own_hard
        and ($splits = [] or list_contains($splits::varchar[], split))
),

spread as (
    select members.split, task_values.score_name,
        -- Rounded, since the last digits depend on the order of threads.
        round(stddev_samp(task_values.value) / sqrt(count(task_values.value)), 12) as standard_error
    from intermediate.task_values
    inner join members using (task_id)
    where task_values.model_run_id = $model_run and task_values.breakdown = 'all'
    group by members.split, task_values.score_name
)

select board.split, board.score_name, board.is_primary, board.mean_score, spread.standard_error,
    board.ci_low, board.ci_high, board.raw_mean_score, board.coverage, board.n_tasks,
    board.n_tasks_wanted, board.is_complete, board.mean_lower, board.mean_upper
from leaderboard as board
inner join intermediate.model_runs
    using (
        benchmark, dataset_revision, judge, judge_config_hash, template_hash,
        grading, judge_trial, vintage, model, model_config_hash
    )
inner join spread on board.split = spread.split and board.score_name = spread.score_name
where model_runs.model_run_id = $model_run
order by board.is_primary desc, board.score_name, board.split
