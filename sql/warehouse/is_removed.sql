-- True for a row that was made, or whose response was made, before the response
-- was removed.
exists (
    select 1
    from {removals} as removed
    where removed.response_id = {rows}.response_id and {rows}.{moment} <= removed.{moment}
)
