-- The share of criteria met by severity, on each split and under each judge; of a detrimental severity that is the
-- share of mistakes made. The gravest good severity first, the gravest bad one last.
select
    judging,
    split,
    list_contains($hard_splits::varchar[], split) as is_hard,
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
from board_figures
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
left join severities
    on
        board_figures.benchmark = severities.benchmark
        and board_figures.label = severities.severity
where
    board_figures.benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $part_score
    and cut = 'severity'
    and not is_own_hard
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    severities.max_weight desc nulls last,
    severity,
    met_share desc nulls last,
    model
