-- One row: a model run with verdicts, and whether any is of a tool that stores
-- failed judge calls as decisions.
--
-- NULL where none is known to be and of some it is not known. What was judged
-- here never is, also before that was stored.
--
-- built as: table
-- depends on: intermediate.graded_verdicts, intermediate.wanted_responses
with marked as (
    select wanted.model_run_id,
        coalesce(
            verdicts.may_hide_failures,
            case when verdicts.source = 'judged' then false end
        ) as may_hide_failures
    from intermediate.graded_verdicts as verdicts
    inner join intermediate.wanted_responses as wanted using (response_id, judging_id)
)

select model_run_id,
    case
        when bool_or(may_hide_failures) then true
        when count(*) = count(may_hide_failures) then false
    end as may_hide_failures
from marked
group by model_run_id
