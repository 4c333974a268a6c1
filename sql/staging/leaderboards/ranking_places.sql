-- One row: a model run's rank among those that it is ranked with, over the
-- tasks with a complete trial for each of them.
--
-- Ranks compare the tasks with at least one complete trial for every ranked
-- model of a ranking under a label on a task set, by the mean before any
-- clipping. Ranked is who has at least half as many of such tasks as the
-- fullest: a model that has hardly begun does not shrink what all are compared
-- on.
--
-- built as: table
-- depends on: staging.breakdown_values, staging.ranking_members,
--     staging.task_set_members
with task_values as (
    select
        task_set_members.task_set_id,
        ranking_members.ranking_id,
        ranking_members.is_own,
        ranking_members.is_of_latest,
        breakdown_values.model_run_id,
        breakdown_values.breakdown,
        breakdown_values.label,
        breakdown_values.score_name,
        breakdown_values.task_id,
        breakdown_values.value
    from staging.breakdown_values
    inner join staging.ranking_members
        on breakdown_values.model_run_id = ranking_members.model_run_id
    inner join staging.task_set_members
        using (benchmark, dataset_revision, task_id)
    where breakdown_values.value is not null
),

counted as (
    select
        task_set_id,
        ranking_id,
        model_run_id,
        breakdown,
        label,
        score_name,
        count(*) as n_tasks
    from task_values
    group by all
),

ranked_runs as (
    select
        task_set_id,
        ranking_id,
        model_run_id,
        breakdown,
        label,
        score_name
    from counted
    qualify
        2 * n_tasks
        >= max(n_tasks) over (
            partition by task_set_id, ranking_id, breakdown, label, score_name
        )
),

ranking_sizes as (
    select
        task_set_id,
        ranking_id,
        breakdown,
        label,
        score_name,
        count(*) as n_ranked
    from ranked_runs
    group by all
),

shared_tasks as (
    select
        task_values.*,
        ranking_sizes.n_ranked,
        count(*) over (
            partition by
                task_set_id, ranking_id, breakdown, label, score_name, task_id
        ) as n_complete
    from task_values
    inner join ranked_runs
        using (
            task_set_id, ranking_id, model_run_id, breakdown, label, score_name
        )
    inner join ranking_sizes
        using (task_set_id, ranking_id, breakdown, label, score_name)
),

means as (
    select
        task_set_id,
        ranking_id,
        is_own,
        is_of_latest,
        model_run_id,
        breakdown,
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
        partition by task_set_id, ranking_id, breakdown, label, score_name
        order by mean_value desc
    ) as rank
from means
