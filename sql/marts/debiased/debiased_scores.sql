-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.mean_scores, intermediate.measured
with expected_scores as (
    -- Of the primary score, with probabilities for decisions.
    select task_set_id, model_run_id, breakdown, label,
        true as is_primary,
        round(raw_mean_score, 12) as expected_score,
        measured.score_ci_low as expected_score_ci_low,
        measured.score_ci_high as expected_score_ci_high
    from intermediate.mean_scores
    left join intermediate.measured using (figure_id, basis)
    where is_expected
)

select
    figures.benchmark,
    figures.dataset_revision,
    figures.split,
    figures.is_own_hard,
    figures.breakdown,
    figures.label,
    figures.judge,
    figures.judge_config_hash,
    figures.template_hash,
    figures.grading,
    figures.judge_trial,
    figures.vintage,
    figures.model,
    figures.model_config_hash,
    figures.score_name,
    figures.is_primary,
    figures.n_tasks,
    figures.n_tasks_wanted,
    figures.n_trials,
    figures.coverage,
    figures.is_latest,
    figures.n_labels,
    figures.n_tasks_labelled,
    figures.n_people,
    figures.n_unsampled_labels,
    figures.unsampled_mean_error,
    figures.n_tasks_uncovered,
    round(figures.raw_mean_score, 12) as judge_score,
    measured_score.score_ci_low as judge_ci_low,
    measured_score.score_ci_high as judge_ci_high,
    measured.debiased,
    measured.debiased_ci_low,
    measured.debiased_ci_high,
    measured.labels_alone,
    measured.labels_alone_ci_low,
    measured.labels_alone_ci_high,
    measured.judge_power,
    measured.effective_labels,
    expected_score,
    expected_score_ci_low,
    expected_score_ci_high,
    expected_score - measured.debiased as expected_difference,
    coalesce(figures.without_labels, measured.debiased_note) as no_figure
from intermediate.debiased_figures as figures
left join intermediate.measured using (figure_id, basis)
left join intermediate.measured as measured_score
    on figures.figure_id = measured_score.figure_id and figures.mean_basis = measured_score.basis
left join expected_scores using (task_set_id, model_run_id, breakdown, label, is_primary)
