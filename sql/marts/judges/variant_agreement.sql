-- How far graders agree with people, for each variant of the rubric and each
-- grading: macro-F1 over all criteria together, and beside it the mean of the
-- tasks' own. Whether imported verdicts are people's is not known here, so that
-- all of them are held against; `reference` says whose they are.
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
