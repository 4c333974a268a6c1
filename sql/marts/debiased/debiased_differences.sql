-- built as: view
-- depends on: intermediate.debiased_figures, intermediate.debiased_pairs,
--     intermediate.measured
select
    a.benchmark,
    a.dataset_revision,
    a.split,
    a.is_own_hard,
    a.breakdown,
    a.label,
    a.judge,
    a.judge_config_hash,
    a.template_hash,
    a.grading,
    a.judge_trial,
    a.vintage,
    pairs.model_a,
    pairs.model_b,
    pairs.model_config_hash_a,
    pairs.model_config_hash_b,
    a.score_name,
    a.is_primary,
    measured.debiased_n as n_tasks,
    a.n_labels as n_labels_a,
    b.n_labels as n_labels_b,
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
inner join intermediate.debiased_figures as a on pairs.figure_a = a.figure_id
inner join intermediate.debiased_figures as b on pairs.figure_b = b.figure_id
