-- One row: the row that a call was made for, and whether it is decided.
with cells as (select unnest($cells::varchar[]) as cell),

stored as (
    select cell, status
    from cells
    inner join responses on response_id = cell
    union all
    select cell, status
    from cells
    inner join verdicts on verdict_id = cell
    union all
    select cell, status
    from cells
    inner join control_verdicts on verdict_id = cell
)

select cell, bool_or(list_contains($decided::varchar[], status)) as is_decided
from stored
group by cell
