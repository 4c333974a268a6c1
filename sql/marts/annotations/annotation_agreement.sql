-- built as: view
-- depends on: intermediate.annotation_figures, intermediate.measured
select
    figure_id as agreement_id,
    benchmark,
    dataset_revision,
    kind,
    annotator,
    compared_with,
    label,
    n_tasks,
    measured.precision_n as n_annotated,
    measured.recall_n as n_compared_with,
    measured.f1_n as n_both,
    measured.precision,
    measured.precision_ci_low,
    measured.precision_ci_high,
    measured.recall,
    measured.recall_ci_low,
    measured.recall_ci_high,
    measured.f1,
    measured.f1_ci_low,
    measured.f1_ci_high,
    measured.jaccard,
    measured.jaccard_ci_low,
    measured.jaccard_ci_high,
    basis
from intermediate.annotation_figures
left join intermediate.measured using (figure_id, basis)
