-- One row: a removed answer, with the moment until which it is.
create or replace temp table {removals} as
select response_id, max({moment}) as {moment}
from noted
group by response_id
