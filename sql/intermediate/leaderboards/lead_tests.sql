-- One row: a ranked model that is not the first of its board, with a flag: false if the
-- paired test shows that the first one is ahead.
--
-- The test is that of `prbench diff`. The p-values of a board are corrected together
-- (Holm).
--
-- built as: view
-- depends on: intermediate.lead_figures, intermediate.measured
with tested as (
    select lead_figures.compared_key, lead_figures.other_figure_id,
        measured.lead as difference,
        measured.lead_p_value as p_value,
        count(p_value) over board as n_tests,
        row_number() over (board order by p_value nulls last, lead_figures.figure_id) as holm_rank
    from intermediate.lead_figures
    -- A test is valid only for the values that it was computed from.
    left join intermediate.measured using (figure_id, basis)
    window board as (partition by compared_key)
),

corrected as (
    select *,
        max(holm_step(p_value, n_tests, holm_rank)) over (
            partition by compared_key
            order by holm_rank
        ) as p_holm
    from tested
)

select
    compared_key,
    other_figure_id as figure_id,
    not coalesce(difference < 0 and p_value is not null and p_holm <= 0.05, false) as may_be_first
from corrected
