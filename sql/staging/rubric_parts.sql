-- What a task's rubric is worth, over all its criteria (cut `all`), over those of each category and of each severity.
select
    criteria.benchmark,
    criteria.dataset_revision,
    criteria.task_id,
    case
        when grouping(criteria.category) = 0 then 'category'
        when grouping(criteria.severity) = 0 then 'severity'
        else 'all'
    end as cut,
    case
        when grouping(criteria.category) = 0
            then coalesce(criteria.category, '(none)')
        when grouping(criteria.severity) = 0
            then coalesce(criteria.severity, '(none)')
        else ''
    end as label,
    coalesce(sum(weight) filter (where weight > 0), 0) as positive,
    coalesce(sum(weight) filter (where weight < 0), 0) as negative,
    count(*) as n_wanted
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
where tasks.is_admitted
group by
    criteria.benchmark, criteria.dataset_revision, criteria.task_id,
    grouping sets ((), (criteria.category), (criteria.severity))
