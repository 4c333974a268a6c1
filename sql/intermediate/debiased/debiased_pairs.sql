-- One row: the figures of two models, at least one with sampled labels, that are
-- ranked together under one label on a task set.
--
-- built as: view
-- depends on: intermediate.debiased_figures
select
    task_set_id,
    breakdown,
    label,
    score_name,
    first_figure.figure_id as figure_a,
    second_figure.figure_id as figure_b,
    figure_key(['difference', first_figure.figure_id, second_figure.figure_id]) as figure_id,
    md5(concat_ws(chr(31), first_figure.basis, second_figure.basis)) as basis
from intermediate.debiased_figures as first_figure
inner join intermediate.debiased_figures as second_figure
    using (task_set_id, ranking_id, breakdown, label, score_name)
where (first_figure.model, first_figure.model_config_hash)
    < (second_figure.model, second_figure.model_config_hash)
    and (first_figure.n_labels > 0 or second_figure.n_labels > 0)
