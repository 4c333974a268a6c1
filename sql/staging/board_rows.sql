-- Equations 2 and 4: a model's mean over the tasks that are complete for it, clipped (where the score says so) after
-- the mean and never before. One row a board, series and score.
with board_sizes as (
    select
        board_id,
        benchmark,
        dataset_revision,
        split,
        is_own_hard,
        count(*) as n_tasks_wanted,
        sum(n_criteria) as n_criteria_wanted
    from boards
    group by all
),

means as (
    select
        boards.board_id,
        task_scores.series_id,
        task_scores.score_name,
        count(task_scores.value) as n_tasks,
        favg(task_scores.value) as unclipped_mean,
        sum(task_scores.n_decided) as n_decided
    from task_scores
    inner join boards using (benchmark, dataset_revision, task_id)
    group by all
),

final as (
    select
        means.board_id,
        means.series_id,
        board_sizes.benchmark,
        board_sizes.dataset_revision,
        board_sizes.split,
        board_sizes.is_own_hard,
        series.judge,
        series.judge_config_hash,
        series.template_hash,
        series.grading,
        series.judge_trial,
        series.vintage,
        series.model,
        series.model_config_hash,
        means.score_name,
        definitions.is_primary,
        means.n_tasks,
        board_sizes.n_tasks_wanted,
        series.n_trials,
        if(
            definitions.clips_mean and means.unclipped_mean < 0,
            0,
            means.unclipped_mean
        ) as mean_score,
        means.unclipped_mean,
        definitions.clips_mean,
        means.n_decided / (board_sizes.n_criteria_wanted * series.n_trials)
            as coverage
    from means
    inner join series using (series_id)
    inner join board_sizes using (board_id)
    inner join score_definitions as definitions
        on
            board_sizes.benchmark = definitions.benchmark
            and means.score_name = definitions.score_name
)

select * from final
