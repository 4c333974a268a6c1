-- Whether a row, or the answer that it rests on, was made until the answer was
-- removed.
exists (
    select 1
    from {removals} as removed
    where removed.response_id = {rows}.response_id and {rows}.{moment} <= removed.{moment}
)
