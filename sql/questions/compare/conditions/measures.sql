-- One row: the interval and the test of a difference between conditions, those
-- that were measured just now before the stored ones.
with fresh as (
    select unnest(from_json($fresh::json, '[{
        "figure_id": "VARCHAR", "basis": "VARCHAR", "method": "VARCHAR",
        "ci_low": "DOUBLE", "ci_high": "DOUBLE", "p_value": "DOUBLE",
        "smallest_detectable": "DOUBLE", "n_differing": "BIGINT",
        "is_small": "BOOLEAN"
    }]'), recursive := true)
)

select * from fresh
union all by name
select * exclude (created_at) from condition_tests
where figure_id not in (select figure_id from fresh)
