-- A model's score by vintage, and its change since the previous vintage under
-- the same judge and template.
--
-- built as: view
-- depends on: leaderboard
select
    benchmark,
    dataset_revision,
    split,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    model,
    model_config_hash,
    score_name,
    is_primary,
    vintage,
    first_response_at,
    mean_score,
    ci_low,
    ci_high,
    raw_mean_score,
    raw_ci_low,
    raw_ci_high,
    n_tasks,
    n_tasks_full,
    n_tasks_wanted,
    n_trials,
    is_complete,
    coverage,
    -- The next vintage is not compared with one that has no complete task.
    lag(case when mean_score is not null then vintage end ignore nulls)
        over by_time as previous_vintage,
    -- Means are compared before clipping, which would hide changes below 0.
    raw_mean_score - lag(raw_mean_score ignore nulls) over by_time as change,
    is_latest
from leaderboard
window by_time as (
    partition by benchmark, dataset_revision, split, judge, judge_config_hash,
        template_hash, grading, judge_trial, model, model_config_hash, score_name
    order by first_response_at, vintage
)
