-- Ranks compare the tasks with at least one complete trial for every ranked model of a panel under a label on a board,
-- by the mean before any clipping. Ranked is who has at least half as many of such tasks as the fullest: a model that
-- has hardly begun does not shrink what all are compared on.
with task_values as (
    select
        boards.board_id,
        series_panels.panel_id,
        series_panels.is_own,
        series_panels.is_of_latest,
        cut_values.series_id,
        cut_values.cut,
        cut_values.label,
        cut_values.score_name,
        cut_values.task_id,
        cut_values.value
    from cut_values
    inner join series_panels
        on cut_values.series_id = series_panels.series_id
    inner join boards using (benchmark, dataset_revision, task_id)
    where cut_values.value is not null
),

counted as (
    select
        board_id,
        panel_id,
        series_id,
        cut,
        label,
        score_name,
        count(*) as n_tasks
    from task_values
    group by all
),

ranked_series as (
    select
        board_id,
        panel_id,
        series_id,
        cut,
        label,
        score_name
    from counted
    qualify
        2 * n_tasks
        >= max(n_tasks) over (
            partition by board_id, panel_id, cut, label, score_name
        )
),

panel_sizes as (
    select
        board_id,
        panel_id,
        cut,
        label,
        score_name,
        count(*) as n_ranked
    from ranked_series
    group by all
),

shared_tasks as (
    select
        task_values.*,
        panel_sizes.n_ranked,
        count(*) over (
            partition by board_id, panel_id, cut, label, score_name, task_id
        ) as n_complete
    from task_values
    inner join ranked_series
        using (board_id, panel_id, series_id, cut, label, score_name)
    inner join panel_sizes using (board_id, panel_id, cut, label, score_name)
),

means as (
    select
        board_id,
        panel_id,
        is_own,
        is_of_latest,
        series_id,
        cut,
        label,
        score_name,
        count(*) as n_tasks_ranked,
        -- What is equal but for rounding is a tie.
        round(favg(value), 12) as mean_value
    from shared_tasks
    where n_complete = n_ranked
    group by all
)

select
    *,
    rank() over (
        partition by board_id, panel_id, cut, label, score_name
        order by mean_value desc
    ) as rank
from means
