-- One row: a task in one check, with the numbers of pairs of decisions by any
-- reviewers on the same criteria (the coincidences of Krippendorff's alpha, 2011).
--
-- built as: table
-- depends on: intermediate.current_reviews
with cells as (
    select benchmark, dataset_revision, review_check, task_id, criterion_id,
        count(*) as n_values,
        sum(value) as n_pass,
        sum(1 - value) as n_fail
    from intermediate.current_reviews
    -- Repetitions of one model are not independent reviewers.
    where review_trial = 1 or review_trial is null
    group by all
    having count(*) > 1
)

select
    benchmark,
    dataset_revision,
    review_check,
    task_id,
    count(*) as n_criteria,
    exact_sum(n_fail * (n_fail - 1) / (n_values - 1)) as fail_fail,
    exact_sum(n_fail * n_pass / (n_values - 1)) as fail_pass,
    exact_sum(n_pass * (n_pass - 1) / (n_values - 1)) as pass_pass
from cells
group by all
