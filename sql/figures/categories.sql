-- name: severities
-- The share of criteria met by severity, on each split and under each judge. For
-- a detrimental severity it is the share of mistakes made. The most important
-- positive severity is first, the most detrimental one last.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    label as severity,
    severities.max_weight < 0 as is_detrimental,
    entry as model,
    met_share,
    met_ci_low,
    met_ci_high,
    is_met_small,
    n_judged,
    n_tasks,
    n_tasks_wanted,
    coverage
from breakdown_leaderboard
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
left join severities
    on breakdown_leaderboard.benchmark = severities.benchmark
        and breakdown_leaderboard.label = severities.severity
where score_name = $label_score
    and breakdown = 'severity'
    and (is_latest or $vintage is not null)
order by judge_config <> $main, judge_config, is_hard, split,
    severities.max_weight desc nulls last, label,
    met_share desc nulls last, entry;

-- name: failures
-- The share of each category's criteria that fail, and its share of all that fail;
-- the category with the highest share is first.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    entry as model,
    model as model_label,
    category as label,
    is_own_hard,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    is_latest,
    n_decided,
    n_failed,
    failure_rate,
    failure_share
from failure_rates
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where is_latest or $vintage is not null
order by judge_config <> $main, judge_config, is_hard, split,
    round(avg(failure_rate) over (partition by judge_config, split, category), 9) desc, label,
    model;

-- name: critical
-- Missed critical criteria, and critical mistakes.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    entry as model,
    model as model_label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    n_trials,
    is_latest,
    is_own_hard,
    critical_met_share,
    critical_met_ci_low,
    critical_met_ci_high,
    is_critical_small,
    n_critical,
    n_tasks_critical,
    critical_coverage,
    mistake_share,
    mistake_ci_low,
    mistake_ci_high,
    is_mistake_small,
    n_mistakes_possible,
    n_tasks_mistakes,
    mistake_coverage,
    responses_with_mistake_share,
    n_responses_at_risk,
    1 - critical_met_share as missed_share,
    1 - critical_met_ci_high as missed_ci_low,
    1 - critical_met_ci_low as missed_ci_high,
    critical_coverage < $bar as is_critical_below_bar,
    mistake_coverage < $bar as is_mistake_below_bar,
    least(critical_coverage, mistake_coverage) < $bar as is_below_bar
from severity_leaderboard
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where is_latest or $vintage is not null
order by judge_config <> $main, judge_config, is_hard, split, mistake_share nulls last,
    critical_met_share desc nulls last, model;
