-- One row: a score of a model run on a split that rests on a random part of the
-- tasks, since all comparisons of the model were settled.
--
-- Where more tasks have been evaluated since, or all of them, there is no row:
-- then the figure rests on no random part any more.
--
-- built as: view
-- depends on: staging.mean_scores, stopping_scores
select
    mean_scores.figure_id,
    parts.n_tasks_evaluated,
    parts.n_tasks_skipped,
    parts.sequence_low,
    parts.sequence_high,
    parts.unbiased_mean_score
from stopping_scores as parts
inner join staging.mean_scores
    using (
        benchmark, dataset_revision, split, judge, judge_config_hash,
        template_hash, grading, judge_trial, vintage, model, model_config_hash,
        score_name
    )
where
    mean_scores.breakdown = 'all'
    and not mean_scores.is_own_hard
    and parts.n_tasks_skipped > 0
    and mean_scores.n_tasks <= parts.n_tasks_evaluated
