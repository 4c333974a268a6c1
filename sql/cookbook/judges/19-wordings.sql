-- How far does each wording of the rubric, and each grading, agree with imported graders?
select rubric, grading, grader, reference,
    round(macro_f1, 3) as macro_f1,
    round(macro_f1_task_mean, 3) as macro_f1_task_mean,
    round(macro_f1_task_mean_absent_as_0, 3) as as_published,
    round(kappa, 3) as kappa,
    n, n_tasks
from variant_agreement
where breakdown = 'all'
order by rubric <> 'original', rubric, grading, grader, reference
