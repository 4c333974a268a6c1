-- One row: how often two graders decided what on a task's criteria, in a figure
-- without measures; decisions as places (0 unmet, 1 partial, 2 met).
select
    stale_pairs.figure_id,
    task_id,
    2 * value_a as a,
    2 * value_b as b,
    n
from staging.agreement_counts
inner join stale_pairs
    using (benchmark, dataset_revision, grader_a, grader_b, breakdown, label)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and grader_a = $a
    and grader_b = $b
