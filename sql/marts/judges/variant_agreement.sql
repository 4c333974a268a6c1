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

select sides.benchmark, sides.dataset_revision, sides.breakdown, sides.label, graders.rubric,
    graders.grading, sides.grader, sides.reference, sides.n, sides.n_tasks, sides.macro_f1,
    sides.macro_f1_ci_low, sides.macro_f1_ci_high, sides.macro_f1_task_mean,
    sides.macro_f1_task_mean_absent_as_0, sides.kappa, sides.agreement
from sides
inner join graders using (benchmark, grader)
