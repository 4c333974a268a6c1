-- True for a response, or a row about it, that was written before the response was
-- removed.
exists (
    select 1
    from removals as removed
    where removed.response_id = {rows}.response_id and {rows}.created_at <= removed.created_at
)
