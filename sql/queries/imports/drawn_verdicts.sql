-- One row: a verdict on one of some responses that a sheet for people drew.
select label_draws.sheet_id, label_draws.response_id, label_draws.criterion_id,
    label_draws.criterion_hash
from label_draws
inner join label_sheets using (sheet_id)
where label_sheets.import_batch is null
    and not label_draws.is_known
    and list_contains($responses::varchar[], label_draws.response_id)
