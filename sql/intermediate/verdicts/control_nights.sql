-- One row: a control set in one night, compared with the first verdicts of the
-- same members. Failed and lost members are no disagreement.
--
-- built as: view
-- depends on: control_set, control_verdicts
with counted as (
    select set_id,
        judge_vintage as night,
        count(value) as n_decided,
        count(*) filter (value is null and status <> 'lost') as n_failed,
        count(*) filter (status = 'lost') as n_lost,
        count(*) filter (value = first_value) as n_agreeing,
        avg(value) as met_share,
        avg(first_value) filter (value is not null) as first_met_share,
        -- Number of equal pairs, if every first decision were paired with every
        -- new one.
        count(value) filter (first_value = 1) * count(*) filter (value = 1)
        + count(value) filter (first_value = 0.5) * count(*) filter (value = 0.5)
        + count(value) filter (first_value = 0) * count(*) filter (value = 0) as n_alike_by_chance
    from control_set
    inner join control_verdicts using (set_id, response_id, criterion_id, criterion_hash)
    group by all
)

select
    set_id,
    night,
    n_decided,
    n_failed,
    n_lost,
    n_agreeing,
    met_share,
    first_met_share,
    n_agreeing / nullif(n_decided, 0) as agreement,
    (n_decided * n_agreeing - n_alike_by_chance)
    / nullif(n_decided * n_decided - n_alike_by_chance, 0) as kappa
from counted
