-- The refusals of the latest ingest check of each revision: a changed policy
-- takes effect with that check.
--
-- built as: table
-- depends on: checks, refusals
with latest_check as (
    select benchmark, dataset_revision, arg_max(run_id, created_at) as run_id
    from checks
    where suite = 'ingest'
    group by benchmark, dataset_revision
)

select refusals.benchmark, refusals.dataset_revision, refusals.task_id, refusals.check_name,
    refusals.severity, refusals.detail
from refusals
inner join latest_check using (benchmark, dataset_revision, run_id)
