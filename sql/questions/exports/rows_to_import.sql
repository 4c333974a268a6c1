-- One row: where in a file a row stands that is to be taken in.
select file_row_number as place
from read_parquet({file}, file_row_number = true) as given
where {has_key} and not coalesce({stays_away}, false)
order by place
