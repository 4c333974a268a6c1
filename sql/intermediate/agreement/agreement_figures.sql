-- One row: the agreement of two graders, over all or under one label of a
-- breakdown.
--
-- built as: view
-- depends on: intermediate.agreement_counts, intermediate.agreement_pairs,
--     intermediate.measured
with labels_by_task as (
    -- For each task and decision: the count of either grader, and of both.
    select benchmark, dataset_revision, grader_a, grader_b, breakdown, label, n_classes, task_id,
        decision,
        sum(n * ((value_a = decision)::integer + (value_b = decision)::integer)) as n_decisions,
        sum(n) filter (value_a = decision and value_b = decision) as n_both
    from intermediate.agreement_counts
    cross join (values (0.0), (0.5), (1.0)) as decisions (decision)
    group by all
),

task_f1 as (
    select
        * exclude (decision, n_decisions, n_both, n_classes),
        exact_avg(2 * coalesce(n_both, 0) / n_decisions) as macro_f1,
        exact_sum(2 * coalesce(n_both, 0) / n_decisions)
        / any_value(n_classes) as macro_f1_absent_as_0
    from labels_by_task
    where n_decisions > 0
    group by all
),

task_means as (
    select
        * exclude (task_id, macro_f1, macro_f1_absent_as_0),
        exact_avg(macro_f1) as macro_f1_task_mean,
        exact_avg(macro_f1_absent_as_0) as macro_f1_task_mean_absent_as_0
    from task_f1
    group by all
)

select pairs.*, task_means.macro_f1_task_mean, task_means.macro_f1_task_mean_absent_as_0,
    measured.kappa, measured.kappa_ci_low, measured.kappa_ci_high, measured.macro_f1,
    measured.macro_f1_ci_low, measured.macro_f1_ci_high, measured.agreement,
    measured.agreement_ci_low, measured.agreement_ci_high
from intermediate.agreement_pairs as pairs
inner join task_means using (benchmark, dataset_revision, grader_a, grader_b, breakdown, label)
left join intermediate.measured using (figure_id, basis)
