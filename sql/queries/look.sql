-- name: columns
-- One row: a column of one table, with its meaning.
select columns.column_name as "column", columns.data_type as "type", columns.comment as meaning
from duckdb_columns() as columns
where not columns.internal and columns.schema_name = 'main' and columns.table_name = {table}
order by columns.column_index;

-- name: errors_of_run
-- One row: an error of a run's failed calls, the most frequent first.
select error
from (select run_id, error from responses union all select run_id, error from verdicts) as failed
where run_id = $run_id and error is not null
group by error
order by count(*) desc, error;

-- name: live_runs
-- One row: a run without a published end; also the evaluating run that ended last.
with latest as (
    select run_id
    from runs
    where outcome <> 'running'
        and not regexp_matches(command, '^prbench (import|ingest|assemble|aggregate|select-hard)\b')
    order by coalesce(ended_at, started_at) desc, run_id
    limit 1
)

select run_id, command, night, config, started_at, ended_at, outcome
from runs
where outcome = 'running' or run_id in (select run_id from latest)
order by started_at, run_id;

-- name: tables
-- One row: a listed table or view, in the given order.
--
-- with: queries/look/tables_and_views
select name as "table", subject, column_count as columns, comment as meaning
from tables_and_views
inner join (values {subjects}) as listed (name, subject, list_position) using (name)
order by list_position;

-- name: tables_and_views
-- One row: a table or view for users, with the meaning of a row.
select table_name as name, column_count, comment
from duckdb_tables()
where not internal and schema_name = 'main'
union all
select view_name as name, column_count, comment
from duckdb_views()
where not internal and schema_name = 'main';
