-- One row: a figure with labels that has no debiased score yet for what it
-- rests on, or is one of two whose difference has none.
with measured as (
    select
        figure_id,
        basis
    from debiased_measures
    where method = $method
),

stale_pairs as (
    select
        figure_a,
        figure_b
    from staging.debiased_pairs
    anti join measured using (figure_id, basis)
)

select
    figures.figure_id,
    figures.basis,
    figures.n_labels,
    figures.n_tasks_labelled,
    figures.n_tasks_uncovered,
    figures.n_tasks,
    figures.without_labels,
    measured.figure_id is null and figures.n_labels > 0 as is_stale
from staging.debiased_figures as figures
left join measured using (figure_id, basis)
where
    (measured.figure_id is null and figures.n_labels > 0)
    or figures.figure_id in (select figure_a from stale_pairs)
    or figures.figure_id in (select figure_b from stale_pairs)
order by figures.figure_id
