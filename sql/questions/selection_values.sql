-- What the tasks of hard selections are worth in each series that answered them, those with a complete trial.
with selected as (
    select distinct benchmark, dataset_revision, task_id
    from hard_subset
    where list_contains($selections::varchar[], selection_id)
)

select
    split_members.split,
    task_parts.series_id,
    list(task_parts.value order by task_parts.task_id) as task_values
from selected
inner join split_members using (benchmark, dataset_revision, task_id)
inner join task_parts using (benchmark, dataset_revision, task_id)
where
    task_parts.cut = 'all'
    and task_parts.score_name = $score
    and task_parts.value is not null
group by all
