-- How often two graders of a criterion decide differently, over all pairs of graders and all responses.
with cells as (
    select
        graded.benchmark,
        graded.dataset_revision,
        graded.task_id,
        graded.criterion_id,
        graded.response_id,
        count(*) as n_values,
        count(*) filter (where value = 0) as n_unmet,
        count(*) filter (where value = 0.5) as n_partial,
        count(*) filter (where value = 1) as n_met
    from graded
    inner join graders using (grader_id)
    where graders.kind <> 'majority' and graders.judge_trial = 1
    group by all
    having count(*) > 1
)

select
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    count(*) as n_graded,
    sum(n_unmet * n_partial + n_unmet * n_met + n_partial * n_met)
    / sum(n_values * (n_values - 1) / 2) as disagreement
from cells
group by all
