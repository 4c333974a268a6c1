-- One row: a table or view that users see, with what one of its rows is.
select table_name as name, column_count, comment
from duckdb_tables()
where not internal and schema_name = 'main'
union all
select view_name as name, column_count, comment
from duckdb_views()
where not internal and schema_name = 'main'
