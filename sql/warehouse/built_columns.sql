-- One row: a column that users see, of a table or view of the database that is being built.
select table_name, column_name
from duckdb_columns()
where database_name = 'building' and schema_name = 'main' and not internal
