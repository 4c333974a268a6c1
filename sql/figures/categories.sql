-- name: severities
-- The share of criteria met by severity, on each split and under each judge. For
-- a detrimental severity it is the share of mistakes made. The most important
-- positive severity is first, the most detrimental one last.
select judge_config, split, is_hard,
    label as severity,
    severities.max_weight < 0 as is_detrimental,
    entry as model,
    met_share, met_ci_low, met_ci_high, is_met_small, n_judged, n_tasks, n_tasks_wanted, coverage
from scoped_displayed_scores as shown
left join severities on shown.benchmark = severities.benchmark and shown.label = severities.severity
where score_name = $label_score and breakdown = 'severity'
order by judge_config <> $main, judge_config, is_hard, split,
    severities.max_weight desc nulls last, label,
    met_share desc nulls last, entry;

-- name: failures
-- The share of each category's criteria that are not met, and its share of all of
-- these; the category with the highest share is first.
select judge_config, split, is_hard, model, model_label,
    category as label,
    * exclude (judge_config, split, is_hard, model, model_label, category)
from presented_failure_rates
order by judge_config <> $main, judge_config, is_hard, split,
    round(avg(failure_rate) over (partition by judge_config, split, category), 9) desc, label,
    model;

-- name: critical
-- Missed critical criteria, and critical mistakes.
select *,
    1 - critical_met_share as missed_share,
    1 - critical_met_ci_high as missed_ci_low,
    1 - critical_met_ci_low as missed_ci_high,
    critical_coverage < $bar as is_critical_below_bar,
    mistake_coverage < $bar as is_mistake_below_bar,
    least(critical_coverage, mistake_coverage) < $bar as is_below_bar
from presented_severity_leaderboard
order by judge_config <> $main, judge_config, is_hard, split, mistake_share nulls last,
    critical_met_share desc nulls last, model;
