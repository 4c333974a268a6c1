-- How far pairs of graders agree, over all or under each label of a breakdown.
select
    grader_a,
    grader_b,
    label,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0,
    agreement,
    agreement_ci_low,
    agreement_ci_high,
    n,
    n_tasks,
    met_share_a,
    met_share_b,
    kind_a,
    kind_b,
    is_member
from staging.agreement_figures
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and breakdown = $breakdown
    and (
        len($graders::varchar[]) = 0
        or list_contains($graders::varchar[], grader_a)
        or list_contains($graders::varchar[], grader_b)
    )
order by label, kappa desc nulls last, grader_a, grader_b
