-- One row: a table or view that is listed, in the order that is given.
select name as "table", origins.origin, listed.column_count as columns, listed.comment as meaning
from listed
inner join origins using (name)
order by origins.place
