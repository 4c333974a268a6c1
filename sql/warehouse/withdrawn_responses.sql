-- One row: a response that was retracted with its import, unless another import
-- also contains it.
create or replace temp table withdrawn as
select distinct response_id
from stored_responses
where import_batch in ({retracted}) and response_id not in (select response_id from responses)
