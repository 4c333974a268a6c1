-- One row: an answer that went with a retracted import; one that another import
-- brought as well is still there.
create or replace temp table withdrawn as
select distinct response_id
from answers
where {batch} in ({retracted}) and response_id not in (select response_id from responses)
