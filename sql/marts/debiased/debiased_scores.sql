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
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    score_name,
    is_primary,
    n_tasks,
    n_tasks_wanted,
    n_trials,
    coverage,
    is_latest,
    n_labels,
    n_tasks_labelled,
    n_people,
    n_unsampled_labels,
    unsampled_mean_error,
    n_tasks_uncovered,
    round(raw_mean_score, 12) as judge_score,
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
    coalesce(without_labels, measured.debiased_note) as no_figure
from intermediate.debiased_figures as figures
left join intermediate.measured using (figure_id, basis)
left join intermediate.measured as measured_score
    on figures.figure_id = measured_score.figure_id and figures.mean_basis = measured_score.basis
left join expected_scores using (task_set_id, model_run_id, breakdown, label, is_primary)
