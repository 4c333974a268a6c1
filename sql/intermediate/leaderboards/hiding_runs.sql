-- One row: a model run with verdicts, with a flag: true if any verdict is from
-- a tool that stores failed judge calls as decisions.
--
-- The flag is NULL if none is known to be from such a tool, but some are
-- unknown. This pipeline does not do that, so its verdicts need no stored flag.
--
-- built as: table
-- depends on: intermediate.graded_verdicts, intermediate.wanted_responses
select
    wanted.model_run_id,
    case
        when bool_or(may_hide_failures) then true
        when bool_and(source = 'judged' or may_hide_failures is not null) then false
    end as may_hide_failures
from intermediate.graded_verdicts
inner join intermediate.wanted_responses as wanted using (response_id, judging_id)
group by wanted.model_run_id
