-- One row: the row of a key that stands, of all that a view of parts has.
select {columns}
from {view}
qualify row_number() over (partition by {key} order by {order}) = 1
