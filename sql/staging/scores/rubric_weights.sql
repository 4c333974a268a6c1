-- One row: what a task's rubric is worth, over all its criteria or over those
-- of one category or severity.
--
-- What a task's rubric is worth, over all its criteria (breakdown `all`), over
-- those of each category and of each severity, and over those of each further
-- label that criteria carry.
--
-- built as: table
-- depends on: criteria, criterion_labels, tasks
with admitted as (
    select
        criteria.benchmark,
        criteria.dataset_revision,
        criteria.task_id,
        criteria.criterion_id,
        coalesce(criteria.category, '(none)') as category,
        coalesce(criteria.severity, '(none)') as severity,
        criteria.weight
    from criteria
    inner join tasks using (benchmark, dataset_revision, task_id)
    where tasks.is_admitted
)

select
    benchmark,
    dataset_revision,
    task_id,
    case
        when grouping(category) = 0 then 'category'
        when grouping(severity) = 0 then 'severity'
        else 'all'
    end as breakdown,
    coalesce(category, severity, '') as label,
    coalesce(sum(weight) filter (where weight > 0), 0) as positive,
    coalesce(sum(weight) filter (where weight < 0), 0) as negative,
    count(*) as n_wanted
from admitted
group by
    benchmark, dataset_revision, task_id,
    grouping sets ((), (category), (severity))
union all by name
select
    benchmark,
    dataset_revision,
    task_id,
    kind as breakdown,
    label,
    coalesce(sum(weight) filter (where weight > 0), 0) as positive,
    coalesce(sum(weight) filter (where weight < 0), 0) as negative,
    count(*) as n_wanted
from admitted
inner join criterion_labels
    using (benchmark, dataset_revision, task_id, criterion_id)
group by benchmark, dataset_revision, task_id, kind, label
