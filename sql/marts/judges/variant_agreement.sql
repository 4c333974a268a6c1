-- Agreement of graders with people, for each variant of the rubric and each
-- grading: macro-F1 over all criteria, and the mean of the tasks' macro-F1.
-- It is not known here which imported graders are people, so all of them are
-- references.
--
-- built as: view
-- depends on: intermediate.agreement_figures, graders
with sides as (
    select agreement_figures.*, grader_a as reference, grader_b as grader
    from intermediate.agreement_figures
    where kind_a = 'imported' and kind_b <> 'majority'
    union all by name
    select agreement_figures.*, grader_b as reference, grader_a as grader
    from intermediate.agreement_figures
    where kind_b = 'imported' and kind_a <> 'majority'
)

select benchmark, dataset_revision, breakdown, label, rubric, grading, grader, reference, n,
    n_tasks, macro_f1, macro_f1_ci_low, macro_f1_ci_high, macro_f1_task_mean,
    macro_f1_task_mean_absent_as_0, kappa, agreement
from sides
inner join graders using (benchmark, grader)
