-- One row: a response that several graders judged.
--
-- A table of its own, because DuckDB then knows how few rows it has, and reads only the
-- verdicts on them.
--
-- depends on: intermediate.response_points
select
    response_id
from intermediate.response_points
where breakdown = 'all' and has_verdicts
group by response_id
having count(*) > 1
