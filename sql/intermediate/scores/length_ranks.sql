-- One row: a task of a model, or a model on a task set, with the ranks of its
-- score and of its length.
--
-- Tied values share the mean of their ranks. A task is one point, the mean over
-- its trials, so the ranked points are independent.
--
-- depends on: intermediate.task_set_members, intermediate.task_values, temp.task_lengths
with task_points as (
    select task_set_id, ranking_id, model_run_id, score_name,
        'tasks' as level,
        -- Values that differ only by rounding are a tie.
        round(task_values.value, 12) as score,
        mean_chars_alnum as chars,
        mean_completion_tokens as tokens
    from intermediate.task_values
    inner join temp.task_lengths using (model_run_id, task_id)
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    where task_values.breakdown = 'all' and task_values.value is not null
),

model_points as (
    select task_set_id, ranking_id,
        -- A point is a whole model run, so all runs of a ranking are ranked together.
        null::ubigint as model_run_id,
        score_name,
        'models' as level,
        -- Rounded, as above; lengths are larger, so fewer decimals are exact.
        round(exact_avg(score), 12) as score,
        round(exact_avg(chars), 9) as chars,
        round(exact_avg(tokens), 9) as tokens
    from task_points
    -- Of the tasks of each run, not of the column above.
    group by task_set_id, ranking_id, task_points.model_run_id, score_name
),

-- A row for each length that is known.
lengths as (
    unpivot (from task_points union all by name from model_points)
    on chars as chars_alnum, tokens as completion_tokens into name measure value length
)

select
    task_set_id,
    ranking_id,
    model_run_id,
    score_name,
    level,
    measure,
    -- The points that are ranked together.
    hash(task_set_id, ranking_id, model_run_id, score_name, level, measure) as group_id,
    rank() over (partition by group_id order by score)
    + (count(*) over (partition by group_id, score) - 1) / 2 as score_rank,
    rank() over (partition by group_id order by length)
    + (count(*) over (partition by group_id, length) - 1) / 2 as length_rank
from lengths
