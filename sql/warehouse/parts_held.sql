-- One row: a part that the database holds.
create or replace table {parts} as
select
    unnest($table_names::varchar[]) as table_name,
    unnest($parts::varchar[]) as part
