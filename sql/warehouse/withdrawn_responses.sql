-- One row: a response that was retracted with its import; a response that
-- another import contains too is still there.
create or replace temp table withdrawn as
select distinct response_id
from stored_responses
where {batch} in ({retracted}) and response_id not in (select response_id from responses)
