-- Agreement of graders with imported ones, for each variant of the rubric and each
-- grading: macro-F1 over all criteria, and the mean of the tasks' macro-F1.
-- Imported graders are people, and judges that ran elsewhere.
--
-- built as: view
-- depends on: intermediate.agreement_figures, graders
select
    benchmark,
    dataset_revision,
    breakdown,
    label,
    rubric,
    grading,
    grader,
    case when grader = grader_a then grader_b else grader_a end as reference,
    n,
    n_tasks,
    macro_f1,
    macro_f1_ci_low,
    macro_f1_ci_high,
    macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0,
    kappa,
    agreement
from intermediate.agreement_figures
inner join graders using (benchmark)
where kind <> 'majority'
    and grader in (grader_a, grader_b)
    and case when grader = grader_a then kind_b else kind_a end = 'imported'
