-- Values that meet on the same criteria within a set of graders, by task: the coincidences of Krippendorff's alpha
-- (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"). Sets are all graders, each in its first
-- repetition, and the repetitions of each judge.
with sets as (
    select 'all graders' as grader_set, grader_id, grader
    from graders
    where kind <> 'majority' and judge_trial = 1
    union all
    select configured || ' (trials)' as grader_set, grader_id, grader
    from graders
    where
        kind <> 'majority'
        and configured in (
            select configured from graders where judge_trial > 1
        )
),

cells as (
    select
        graded.benchmark,
        graded.dataset_revision,
        sets.grader_set,
        graded.task_id,
        graded.response_id,
        graded.criterion_id,
        count(*) as n_values,
        count(*) filter (where value = 0) as n_unmet,
        count(*) filter (where value = 0.5) as n_partial,
        count(*) filter (where value = 1) as n_met
    from graded
    inner join sets using (grader_id)
    group by all
    having count(*) > 1
),

final as (
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
    from cells
    inner join graded_cuts using (response_id, criterion_id)
    group by
        benchmark, dataset_revision, grader_set, task_id,
        grouping sets ((), (category), (severity))
)

select * from final
