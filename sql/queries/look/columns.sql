-- One row: a column of one table, with what it means.
select columns.column_name as "column", columns.data_type as "type", columns.comment as meaning
from duckdb_columns() as columns
inner join named_table on columns.table_name = named_table.name
where not columns.internal and columns.schema_name = 'main'
order by columns.column_index
