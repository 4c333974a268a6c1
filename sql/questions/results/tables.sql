-- One row: a table or view that users see, marts first.
with listed as (
    select table_name as name, comment
    from duckdb_tables()
    where schema_name = 'main' and database_name = current_database()
    union all
    select view_name as name, comment
    from duckdb_views()
    where schema_name = 'main' and database_name = current_database()
),

final as (
    select
        name,
        case when list_contains($marts, name) then 'mart' else 'stored' end
            as kind,
        comment as meaning
    from listed
    where list_contains($marts, name) or list_contains($stored, name)
    order by kind, name
)

select * from final
