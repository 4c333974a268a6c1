-- built as: view
-- depends on: intermediate.agreement_figures
select
    benchmark,
    dataset_revision,
    grader_a,
    grader_b,
    kind_a,
    kind_b,
    is_member,
    n,
    n_tasks,
    met_share_a,
    met_share_b,
    macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0,
    kappa,
    kappa_ci_low,
    kappa_ci_high,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    agreement,
    agreement_ci_low,
    agreement_ci_high
from intermediate.agreement_figures
where breakdown = 'all'
