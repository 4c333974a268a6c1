-- name: severities
-- The share of criteria met by severity, on each split and under each judge; of
-- a detrimental severity that is the share of mistakes made. The gravest good
-- severity first, the gravest bad one last.
select judging, split, is_hard,
    label as severity,
    severities.max_weight < 0 as is_detrimental,
    entry as model,
    met_share, met_ci_low, met_ci_high, is_met_small, n_judged, n_tasks, n_tasks_wanted, coverage
from scoped_displayed_scores as shown
left join severities on shown.benchmark = severities.benchmark and shown.label = severities.severity
where score_name = $label_score and breakdown = 'severity'
order by judging <> $main, judging, is_hard, split, severities.max_weight desc nulls last, label,
    met_share desc nulls last, entry;
