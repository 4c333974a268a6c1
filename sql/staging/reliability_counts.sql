-- Values that meet on the same criteria within a set of graders, by task: the coincidences of Krippendorff's alpha
-- (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").
with final as (
    select
        benchmark,
        dataset_revision,
        grader_set,
        case
            when grouping(category) = 0 then 'category'
            when grouping(severity) = 0 then 'severity'
            else 'all'
        end as cut,
        coalesce(category, severity, '') as label,
        task_id,
        count(*) as n,
        max(n_values) as n_graders,
        sum(n_unmet * (n_unmet - 1) / (n_values - 1)) as unmet_unmet,
        sum(n_unmet * n_partial / (n_values - 1)) as unmet_partial,
        sum(n_unmet * n_met / (n_values - 1)) as unmet_met,
        sum(n_partial * (n_partial - 1) / (n_values - 1)) as partial_partial,
        sum(n_partial * n_met / (n_values - 1)) as partial_met,
        sum(n_met * (n_met - 1) / (n_values - 1)) as met_met,
        count(*) filter (
            where greatest(n_unmet, n_partial, n_met) = n_values
        ) as n_unanimous
    from graded_cells
    inner join graded_cuts using (response_id, criterion_id)
    group by
        benchmark, dataset_revision, grader_set, task_id,
        grouping sets ((), (category), (severity))
)

select * from final
