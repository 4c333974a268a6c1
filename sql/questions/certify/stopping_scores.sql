-- One row: a model's score on the random part of a split that was evaluated
-- when its comparisons were settled.
select
    split,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    score_name,
    n_tasks,
    n_tasks_evaluated,
    n_tasks_skipped,
    sequence_low,
    sequence_high,
    unbiased_mean_score
from stopping_scores
where benchmark = $benchmark and dataset_revision = $revision
order by all
