-- One row: a row whose reply may be read otherwise now.
select *
from reread_rows
where is_doubtful
