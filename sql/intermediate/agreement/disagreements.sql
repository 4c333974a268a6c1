-- One row: the share of different decisions on a criterion, over all pairs of
-- graders and all responses.
--
-- built as: table
-- needs: temp.graded_cells
-- depends on: temp.graded_cells
select
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    count(*) as n_graded,
    sum(n_unmet * n_partial + n_unmet * n_met + n_partial * n_met)
    / sum(n_values * (n_values - 1) / 2) as disagreement
from temp.graded_cells
where grader_set = 'all graders'
group by all
