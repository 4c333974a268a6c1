-- One row: a column of a table or view of the database that is being built.
select if(schema_name = 'main', '', schema_name || '.') || table_name, column_name
from duckdb_columns()
where database_name = 'building' and not internal
