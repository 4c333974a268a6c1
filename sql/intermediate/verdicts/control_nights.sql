-- One row: a control set in one night, compared with the first verdicts of the
-- same members. Failed and lost members are no disagreement.
--
-- built as: view
-- depends on: control_set, control_verdicts
with decisions as (
    select set_id,
        night.judge_vintage as night,
        night.status, night.value, control_set.first_value,
        night.value is not null as is_decided
    from control_set
    inner join control_verdicts as night using (set_id, response_id, criterion_id, criterion_hash)
),

counted as (
    select set_id, night,
        count(value) as n_decided,
        count(*) filter (value is null and status <> 'lost') as n_failed,
        count(*) filter (status = 'lost') as n_lost,
        count(*) filter (value = first_value) as n_agreeing,
        avg(value) as met_share,
        avg(first_value) filter (is_decided) as first_met_share,
        -- Number of equal pairs, if every first decision were paired with every
        -- new one.
        count(*) filter (is_decided and first_value = 1) * count(*) filter (value = 1)
        + count(*) filter (is_decided and first_value = 0.5) * count(*) filter (value = 0.5)
        + count(*) filter (is_decided and first_value = 0)
        * count(*) filter (value = 0) as n_alike_by_chance
    from decisions
    group by set_id, night
)

select
    counted.* exclude (n_alike_by_chance),
    n_agreeing / nullif(n_decided, 0) as agreement,
    (n_decided * n_agreeing - n_alike_by_chance)
    / nullif(n_decided * n_decided - n_alike_by_chance, 0) as kappa
from counted
