-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.mean_scores, intermediate.measured
select
    figures.* exclude (
        task_set_id, model_run_id, figure_id, basis, mean_basis, ranking_id, raw_mean_score,
        mean_score, without_labels
    ),
    round(figures.raw_mean_score, 12) as judge_score,
    own.score_ci_low as judge_ci_low,
    own.score_ci_high as judge_ci_high,
    measured.debiased, measured.debiased_ci_low, measured.debiased_ci_high, measured.labels_alone,
    measured.labels_alone_ci_low, measured.labels_alone_ci_high, measured.judge_power,
    measured.effective_labels,
    round(expected.raw_mean_score, 12) as expected_score,
    of_expected.score_ci_low as expected_score_ci_low,
    of_expected.score_ci_high as expected_score_ci_high,
    expected_score - measured.debiased as expected_difference,
    coalesce(figures.without_labels, measured.debiased_note) as no_figure
from intermediate.debiased_figures as figures
left join intermediate.measured using (figure_id, basis)
left join intermediate.measured as own
    on figures.figure_id = own.figure_id and figures.mean_basis = own.basis
left join intermediate.mean_scores as expected
    on figures.task_set_id = expected.task_set_id
        and figures.model_run_id = expected.model_run_id
        and figures.breakdown = expected.breakdown
        and figures.label = expected.label
        and 'expected_' || figures.score_name = expected.score_name
left join intermediate.measured as of_expected
    on expected.figure_id = of_expected.figure_id and expected.basis = of_expected.basis
