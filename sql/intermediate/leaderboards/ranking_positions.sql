-- One row: a model run's rank in a ranking, under a label on a task set.
--
-- Ranks compare means before clipping, over the tasks with a complete trial of
-- every ranked model. A model is ranked if it has at least half as many complete
-- tasks as the model with the most: one with few results does not reduce the
-- shared tasks.
--
-- built as: table
-- depends on: intermediate.figure_values, intermediate.mean_scores,
--     intermediate.ranking_members
with ranked_runs as (
    select mean_scores.figure_id, ranking_members.is_own, ranking_members.is_of_latest,
        hash(task_set_id, ranking_id, breakdown, label, score_name) as compared_key
    from intermediate.mean_scores
    inner join intermediate.ranking_members using (task_set_id, model_run_id)
    where n_tasks > 0
    qualify 2 * n_tasks >= max(n_tasks) over (partition by compared_key)
),

ranking_sizes as (
    select compared_key, count(*) as n_ranked
    from ranked_runs
    group by compared_key
),

ranked_values as (
    select ranked_runs.compared_key, figure_id, figure_values.task, figure_values.value
    from intermediate.figure_values
    inner join ranked_runs using (figure_id)
),

shared_tasks as (
    select compared_key, task
    from ranked_values
    inner join ranking_sizes using (compared_key)
    group by compared_key, task
    having count(*) = any_value(n_ranked)
),

means as (
    select compared_key, figure_id,
        count(*) as n_tasks_ranked,
        -- Values that differ only by rounding are a tie.
        round(exact_avg(value), 12) as mean_value
    from ranked_values
    semi join shared_tasks using (compared_key, task)
    group by compared_key, figure_id
)

select
    figure_id,
    is_own,
    is_of_latest,
    compared_key,
    means.n_tasks_ranked,
    rank() over (partition by compared_key order by mean_value desc) as rank
from ranked_runs
inner join means using (compared_key, figure_id)
