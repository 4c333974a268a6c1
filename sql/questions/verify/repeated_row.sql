-- One row: a key that more than one row of a table has.
select count(*) as n_rows
from {table_name}
group by {key}
having count(*) > 1
limit 1
