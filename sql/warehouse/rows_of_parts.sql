-- One row: a row of a part, with the part's name and the row's position in it.
--
-- Columns are found by name, because a part of an earlier version may lack some
-- or have others. A row without a key belongs to a former table.
create or replace temp view {view} as
select {columns}, parse_filename(filename) as part, file_row_number as part_row
from (
    select * from {view}_contract
    union all by name
    select *, filename, file_row_number
    from read_parquet([{files}], union_by_name = true, hive_partitioning = false)
)
where {has_key}
