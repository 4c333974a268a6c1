-- How a model's score went on from vintage to vintage, beside the one before
-- under the same judge and template.
--
-- built as: view
-- depends on: leaderboard
select benchmark, dataset_revision, split, judge, judge_config_hash, template_hash, grading,
    judge_trial, model, model_config_hash, score_name, is_primary, vintage, first_response_at,
    mean_score, ci_low, ci_high, raw_mean_score, raw_ci_low, raw_ci_high, n_tasks, n_tasks_full,
    n_tasks_wanted, n_trials, is_complete, coverage,
    -- A vintage without a single complete task is no measure of the next one.
    lag(case when mean_score is not null then vintage end ignore nulls)
        over by_time as previous_vintage,
    -- What is clipped is not compared: below 0 a change would not be seen.
    raw_mean_score - lag(raw_mean_score ignore nulls) over by_time as change
from leaderboard
window by_time as (
    partition by benchmark, dataset_revision, split, judge, judge_config_hash,
        template_hash, grading, judge_trial, model, model_config_hash, score_name
    order by first_response_at, vintage
)
