-- One row: a task under a label, with the numbers of pairs of decisions by graders
-- of a set on the same criteria, a column for each pair (such as `unmet_met`).
--
-- These are the coincidences of Krippendorff's alpha (Krippendorff 2011,
-- "Computing Krippendorff's Alpha-Reliability").
--
-- built as: table
-- needs: temp.graded_cells
-- depends on: temp.graded_breakdowns, temp.graded_cells
select
    benchmark,
    dataset_revision,
    grader_set,
    case
        when grouping(category) = 0 then 'category'
        when grouping(severity) = 0 then 'severity'
        else 'all'
    end as breakdown,
    coalesce(category, severity, '') as label,
    task_id,
    count(*) as n,
    max(n_values) as n_graders,
    exact_sum(n_unmet * (n_unmet - 1) / (n_values - 1)) as unmet_unmet,
    exact_sum(n_unmet * n_partial / (n_values - 1)) as unmet_partial,
    exact_sum(n_unmet * n_met / (n_values - 1)) as unmet_met,
    exact_sum(n_partial * (n_partial - 1) / (n_values - 1)) as partial_partial,
    exact_sum(n_partial * n_met / (n_values - 1)) as partial_met,
    exact_sum(n_met * (n_met - 1) / (n_values - 1)) as met_met,
    count(*) filter (where greatest(n_unmet, n_partial, n_met) = n_values) as n_unanimous
from temp.graded_cells
inner join temp.graded_breakdowns using (response_id, criterion_id)
group by benchmark, dataset_revision, grader_set, task_id,
    grouping sets ((), (category), (severity))
