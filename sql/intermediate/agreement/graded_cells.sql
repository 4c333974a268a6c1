-- One row: a criterion of a response that at least two graders of a set decided,
-- with the number of graders that made each decision.
--
-- depends on: temp.graded, temp.set_members
select
    members.grader_set,
    graded.benchmark,
    graded.dataset_revision,
    graded.task_id,
    graded.response_id,
    graded.criterion_id,
    count(*) as n_values,
    count(*) filter (where value = 0) as n_unmet,
    count(*) filter (where value = 0.5) as n_partial,
    count(*) filter (where value = 1) as n_met
from temp.graded
inner join temp.set_members as members using (grader_id, benchmark)
group by all
having count(*) > 1
