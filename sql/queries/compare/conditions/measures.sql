-- One row: a measure of a difference between conditions; of those that were
-- measured just now the new ones, else the stored ones.
with fresh as (
    select unnest(from_json($fresh::json, '[{
        "figure_id": "VARCHAR", "basis": "VARCHAR", "method": "VARCHAR",
        "measure": "VARCHAR", "value": "DOUBLE", "ci_low": "DOUBLE",
        "ci_high": "DOUBLE", "p_value": "DOUBLE", "n": "BIGINT",
        "is_small": "BOOLEAN"
    }]'), recursive := true)
)

select * from fresh
union all by name
select * exclude (note, created_at) from measures
where measure in ('difference', 'smallest_detectable')
    and figure_id not in (select figure_id from fresh)
