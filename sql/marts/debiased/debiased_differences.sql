-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.debiased_pairs,
--     intermediate.measured
select
    first_figure.benchmark,
    first_figure.dataset_revision,
    first_figure.split,
    first_figure.is_own_hard,
    first_figure.breakdown,
    first_figure.label,
    first_figure.judge,
    first_figure.judge_config_hash,
    first_figure.template_hash,
    first_figure.grading,
    first_figure.judge_trial,
    first_figure.vintage,
    first_figure.model as model_a,
    second_figure.model as model_b,
    first_figure.model_config_hash as model_config_hash_a,
    second_figure.model_config_hash as model_config_hash_b,
    first_figure.score_name,
    first_figure.is_primary,
    measured.debiased_n as n_tasks,
    first_figure.n_labels as n_labels_a,
    second_figure.n_labels as n_labels_b,
    measured.judge_score as judge_difference,
    measured.debiased as debiased_difference,
    measured.debiased_ci_low,
    measured.debiased_ci_high,
    measured.labels_alone as labels_alone_difference,
    measured.labels_alone_ci_low,
    measured.labels_alone_ci_high,
    measured.debiased_note as no_figure
from intermediate.debiased_pairs as pairs
left join intermediate.measured using (figure_id, basis)
inner join intermediate.debiased_figures as first_figure
    on pairs.figure_a = first_figure.figure_id
inner join intermediate.debiased_figures as second_figure
    on pairs.figure_b = second_figure.figure_id
