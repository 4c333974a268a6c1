-- One row: a model run, with a flag: true if any of its verdicts is from a tool that stores
-- failed judge calls as decisions.
--
-- The flag is NULL if none is known to be from such a tool, but some are
-- unknown. This pipeline does not do that, so its verdicts need no stored flag.
--
-- built as: table
-- depends on: intermediate.graded_verdicts, intermediate.model_runs,
--     intermediate.wanted_responses
with other_tools as (
    select model_run_id,
        bool_or(may_hide_failures) as hides_failures,
        bool_and(may_hide_failures is not null) as is_known
    from intermediate.graded_verdicts
    inner join intermediate.wanted_responses using (response_id, judging_id)
    where source <> 'judged' or may_hide_failures is not null
    group by model_run_id
)

select
    model_run_id,
    case
        when hides_failures then true
        when coalesce(is_known, true) then false
    end as may_hide_failures
from intermediate.model_runs
left join other_tools using (model_run_id)
