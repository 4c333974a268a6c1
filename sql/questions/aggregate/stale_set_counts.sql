-- One row: how often two decisions meet on a task's criteria within a set of
-- graders, in a figure without measures; decisions as places (0 unmet,
-- 1 partial, 2 met).
with counts as (
    select reliability_counts.*, stale_sets.figure_id
    from staging.reliability_counts
    inner join stale_sets
        using (benchmark, dataset_revision, grader_set, breakdown, label)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and grader_set = $set
)

select
    counts.figure_id,
    counts.task_id,
    cells.a,
    cells.b,
    cells.n
from
    counts,
    lateral (
        values
        (0, 0, unmet_unmet),
        (0, 1, unmet_partial),
        (1, 0, unmet_partial),
        (0, 2, unmet_met),
        (2, 0, unmet_met),
        (1, 1, partial_partial),
        (1, 2, partial_met),
        (2, 1, partial_met),
        (2, 2, met_met)
    ) as cells (a, b, n)
