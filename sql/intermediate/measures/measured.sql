-- One row: a figure with all its measures beside each other, for the values
-- that they were computed from.
--
-- A measure belongs to these values: it is not shown beside newer ones, so
-- whoever joins compares `basis` as well. Columns are the measure's name, for
-- its value, and the name with `_ci_low`, `_ci_high`, `_n`, `_is_small` and
-- `_note`. There are those of the measures that other models read as
-- `measured.<name>`.
--
-- built as: table
-- depends on: measures
select figure_id, basis,
    columns('(.*)_value') as '\1',
    columns('.*_(ci_low|ci_high|n|is_small|note)$')
from measures
pivot (
    any_value(value) as value,
    any_value(ci_low) as ci_low,
    any_value(ci_high) as ci_high,
    any_value(n) as n,
    any_value(is_small) as is_small,
    any_value(note) as note
    for measure in ({measures})
    group by figure_id, basis
)
