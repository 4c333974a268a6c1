-- What the tasks of hard selections are worth in each model run that answered
-- them, those with a complete trial.
with selected as (
    select distinct benchmark, dataset_revision, task_id
    from hard_subset
    where list_contains($selections::varchar[], selection_id)
)

select split_members.split, task_values.model_run_id,
    list(task_values.value order by task_values.task_id) as task_values
from selected
inner join split_members using (benchmark, dataset_revision, task_id)
inner join intermediate.task_values using (benchmark, dataset_revision, task_id)
where task_values.breakdown = 'all'
    and task_values.score_name = $score
    and task_values.value is not null
group by all
