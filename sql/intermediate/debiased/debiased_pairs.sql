-- One row: the figures of two models, at least one with sampled labels, that are
-- ranked together under one label on a task set.
--
-- built as: view
-- depends on: intermediate.debiased_figures
select
    a.task_set_id,
    a.breakdown,
    a.label,
    a.score_name,
    a.figure_id as figure_a,
    b.figure_id as figure_b,
    a.model as model_a,
    b.model as model_b,
    a.model_config_hash as model_config_hash_a,
    b.model_config_hash as model_config_hash_b,
    figure_key(['difference', a.figure_id, b.figure_id]) as figure_id,
    md5(concat_ws(chr(31), a.basis, b.basis)) as basis
from intermediate.debiased_figures as a
inner join intermediate.debiased_figures as b
    on a.task_set_id = b.task_set_id
        and a.ranking_id = b.ranking_id
        and (a.breakdown, a.label, a.score_name) = (b.breakdown, b.label, b.score_name)
        and (a.model, a.model_config_hash) < (b.model, b.model_config_hash)
where a.n_labels > 0 or b.n_labels > 0
