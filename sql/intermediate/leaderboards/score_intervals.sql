-- One row: a figure of a leaderboard with the intervals of its mean, of its
-- trials and of its share of criteria met.
--
-- A figure on a random part that depends on its own results has an interval that
-- allows for that.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.measured, intermediate.random_parts
select
    mean_scores.figure_id,
    parts.n_tasks_skipped,
    parts.unbiased_mean_score,
    case when parts.figure_id is null then measured.score_ci_low else sequence_low end as ci_low,
    case when parts.figure_id is null then measured.score_ci_high else sequence_high end as ci_high,
    measured.score_is_small as is_small,
    measured.trials as trials_mean,
    measured.trials_ci_low,
    measured.trials_ci_high,
    measured.met_ci_low,
    measured.met_ci_high,
    measured.met_is_small as is_met_small
from intermediate.mean_scores
left join intermediate.measured using (figure_id, basis)
left join intermediate.random_parts as parts using (figure_id)
