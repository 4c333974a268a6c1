-- One row: how many blocks of the file a table takes, and how many places for
-- rows it has in them.
with segments as (
    select *
    from pragma_storage_info({table})
    where segment_type not in ('VALIDITY')
)

select
    (
        select count(distinct block_id)
        from segments
        where persistent
    ) as n_blocks,
    coalesce(sum(count), 0)::bigint as n_places
from segments
where column_id = 0
