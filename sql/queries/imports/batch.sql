-- What of one imported file is in the tables, with all verdicts on its
-- responses, and whether it was retracted.
with of_batch as (
    select response_id from responses
    where import_batch = $batch
)

select
    (select count(*) from of_batch) as n_responses,
    (
        select count(*) from verdicts
        where import_batch = $batch or response_id in (select response_id from of_batch)
    ) as n_verdicts,
    (select count(*) from expert_reviews where import_batch = $batch) as n_reviews,
    coalesce(
        (select is_retracted from retractions where import_batch = $batch),
        false
    ) as is_retracted
