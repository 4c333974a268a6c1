-- name: breakdowns
-- The mean score under each label of one breakdown, on each split and under
-- each judge; labels with the best means first. The criteria under a label may
-- all have negative weights, so they get a score that is defined for those too.
select judging, split, is_hard, label,
    displayed_rank as rank,
    entry as model,
    score_name, mean_score, ci_low, ci_high,
    hidden_mean_score as raw_mean_score,
    hidden_ci_low as raw_ci_low,
    hidden_ci_high as raw_ci_high,
    is_small, mean_lower, mean_upper, n_tasks, n_tasks_wanted, coverage
from shown_scores
inner join shown_splits using (split)
where breakdown = $breakdown
    and score_name = if($of_criteria, $label_score, $score)
    and not is_own_hard
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    try_cast(label as integer) nulls last,
    -- What is equal but for rounding is a tie.
    round(avg(mean_score) over (partition by judging, split, label), 9) desc nulls last,
    label,
    displayed_rank nulls last,
    entry;

-- name: critical
-- Of the criteria of the highest severity the share missed, of those of the
-- gravest detrimental one the share committed: of each model on each split,
-- under each judge, the fewest mistakes first.
select judging, split, is_hard,
    entry as model,
    1 - critical_met_share as missed_share,
    1 - critical_met_ci_high as missed_ci_low,
    1 - critical_met_ci_low as missed_ci_high,
    is_critical_small, n_critical, n_tasks_critical, critical_coverage, mistake_share,
    mistake_ci_low, mistake_ci_high, is_mistake_small, n_mistakes_possible, n_tasks_mistakes,
    mistake_coverage, responses_with_mistake_share, n_responses_at_risk
from severity_leaderboard
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
order by judging <> $main, judging, is_hard, split, mistake_share nulls last,
    missed_share nulls last, model;

-- name: failures
-- Which criteria the answers of each model fail, by category, on each split and
-- under each judge: the category that fails most often first. A positive
-- criterion fails when it is not met, a negative one when it is met.
select judging, split, is_hard,
    category as label,
    entry as model,
    failure_rate, failure_share, n_failed, n_decided
from failure_rates
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
order by judging <> $main, judging, is_hard, split,
    round(avg(failure_rate) over (partition by judging, split, label), 9) desc, label, model;

-- name: severities
-- The share of criteria met by severity, on each split and under each judge; of
-- a detrimental severity that is the share of mistakes made. The gravest good
-- severity first, the gravest bad one last.
select judging, split, is_hard,
    label as severity,
    severities.max_weight < 0 as is_detrimental,
    entry as model,
    met_share, met_ci_low, met_ci_high, is_met_small, n_judged, n_tasks, n_tasks_wanted, coverage
from shown_scores
inner join shown_splits using (split)
left join severities
    on shown_scores.benchmark = severities.benchmark and shown_scores.label = severities.severity
where score_name = $label_score and breakdown = 'severity' and not is_own_hard
order by judging <> $main, judging, is_hard, split, severities.max_weight desc nulls last, label,
    met_share desc nulls last, entry;
