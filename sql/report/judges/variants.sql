-- How far each grader agrees with imported verdicts, people's most often, for
-- each variant of the rubric and each grading.
select rubric,
    replace(grading, '_', ' ') as grading,
    grader, reference, macro_f1, macro_f1_ci_low, macro_f1_ci_high,
    -- Sums in another order differ in the last digits.
    round(macro_f1_task_mean, 12) as macro_f1_task_mean,
    round(macro_f1_task_mean_absent_as_0, 12) as macro_f1_task_mean_absent_as_0,
    kappa, agreement, n, n_tasks,
    n < 50 as is_few
from variant_agreement
where benchmark = $benchmark and dataset_revision = $revision and breakdown = 'all'
order by rubric <> 'original', rubric, grading, grader, reference
