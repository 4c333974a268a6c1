-- One row: a figure with a column for each of its measures, for the values that
-- they were computed from.
--
-- A measure is valid for these values only, so a join must also compare `basis`.
-- The column of the value has the measure's name; others add `_ci_low`,
-- `_ci_high`, `_p_value`, `_n`, `_is_small` and `_note`. Only columns that other models read
-- as `measured.<name>` exist.
--
-- built as: table
-- depends on: measures
with measured_values as (
    from measures
    pivot (
        any_value(value)
        for measure in ({measures})
        group by figure_id, basis
    )
),

details as (
    from measures
    pivot (
        any_value(ci_low) as ci_low,
        any_value(ci_high) as ci_high,
        any_value(p_value) as p_value,
        any_value(n) as n,
        any_value(is_small) as is_small,
        any_value(note) as note
        for measure in ({measures})
        group by figure_id, basis
    )
)

select *
from measured_values
inner join details using (figure_id, basis)
