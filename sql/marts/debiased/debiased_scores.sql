-- built as: view
-- depends on: staging.debiased_figures, debiased_measures, intervals
select
    figures.* exclude (
        task_set_id, model_run_id, figure_id, basis, mean_basis, ranking_id, raw_mean_score,
        mean_score, without_labels
    ),
    round(figures.raw_mean_score, 12) as judge_score,
    intervals.ci_low as judge_ci_low,
    intervals.ci_high as judge_ci_high,
    measures.* exclude (figure_id, basis, method, n_tasks, judge_score, no_figure, created_at),
    coalesce(figures.without_labels, measures.no_figure) as no_figure
from staging.debiased_figures as figures
left join debiased_measures as measures
    on figures.figure_id = measures.figure_id
        -- A figure belongs to the values that it was computed from.
        and figures.basis = measures.basis
left join intervals
    on figures.figure_id = intervals.figure_id and figures.mean_basis = intervals.basis
