-- One row: a column of a table or view that users see, with what it means.
select
    listed.name,
    coalesce(listed.comment, '') as meaning,
    columns.column_name,
    coalesce(columns.comment, '') as column_meaning
from listed
inner join duckdb_columns() as columns
    on listed.name = columns.table_name
where not columns.internal and columns.schema_name = 'main'
order by listed.name, columns.column_index
