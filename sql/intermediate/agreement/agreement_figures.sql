-- One row: the agreement of two graders, over all or under one label of a breakdown.
--
-- built as: view
-- depends on: intermediate.agreement_counts, intermediate.agreement_pairs,
--     intermediate.measured
with labels_by_task as (
    -- For each task and decision: the count of either grader, and the F1.
    select benchmark, dataset_revision, grader_a, grader_b, breakdown, label, n_classes, task_id,
        decision,
        sum(n * ((value_a = decision)::integer + (value_b = decision)::integer)) as n_decisions,
        2 * coalesce(sum(n) filter (value_a = decision and value_b = decision), 0) / n_decisions
            as f1
    from intermediate.agreement_counts
    cross join (values (0.0), (0.5), (1.0)) as decisions (decision)
    group by all
    having n_decisions > 0
),

task_f1 as (
    select
        * exclude (decision, n_decisions, f1, n_classes),
        exact_avg(f1) as macro_f1,
        exact_sum(f1) / any_value(n_classes) as macro_f1_absent_as_0
    from labels_by_task
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

select
    benchmark,
    dataset_revision,
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    is_member,
    breakdown,
    label,
    n,
    n_tasks,
    met_share_a,
    met_share_b,
    task_means.macro_f1_task_mean,
    task_means.macro_f1_task_mean_absent_as_0,
    measured.kappa,
    measured.kappa_ci_low,
    measured.kappa_ci_high,
    measured.macro_f1,
    measured.macro_f1_ci_low,
    measured.macro_f1_ci_high,
    measured.agreement,
    measured.agreement_ci_low,
    measured.agreement_ci_high
from intermediate.agreement_pairs
inner join task_means using (benchmark, dataset_revision, grader_a, grader_b, breakdown, label)
left join intermediate.measured using (figure_id, basis)
