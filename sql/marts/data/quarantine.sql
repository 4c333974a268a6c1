-- The refusals of the latest ingest check of each revision: a changed policy
-- takes effect with that check.
--
-- built as: table
-- depends on: checks, refusals
with latest_check as (
    select benchmark, dataset_revision, arg_max(run_id, created_at) as run_id
    from checks
    where suite = 'ingest'
    group by all
)

select
    benchmark,
    dataset_revision,
    task_id,
    check_name,
    severity,
    detail
from refusals
semi join latest_check using (benchmark, dataset_revision, run_id)
