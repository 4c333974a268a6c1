-- One row: a model run with verdicts of a tool that stores failed judge calls
-- as decisions.
--
-- built as: table
-- depends on: staging.graded_verdicts, staging.wanted_responses
select distinct wanted.model_run_id
from staging.graded_verdicts
inner join staging.wanted_responses as wanted using (response_id, judging_id)
where graded_verdicts.may_hide_failures
