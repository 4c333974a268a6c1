-- What the models' tasks are worth that a hard selection and a split share, split by split.
with selected as (
    select benchmark, dataset_revision, field, task_id
    from hard_subset
    where selection_id = $selection
),

sizes as (
    select split, count(*) as n_tasks_wanted
    from selected
    inner join split_members using (benchmark, dataset_revision, task_id)
    group by split
)

select
    split_members.split,
    sizes.n_tasks_wanted,
    task_scores.model,
    task_scores.model_config_hash,
    task_scores.judge,
    task_scores.judge_config_hash,
    task_scores.template_hash,
    task_scores.grading,
    task_scores.judge_trial,
    task_scores.vintage,
    task_scores.n_trials,
    list(task_scores.value order by task_scores.task_id) as task_values
from task_scores
inner join selected using (benchmark, dataset_revision, task_id)
inner join split_members using (benchmark, dataset_revision, task_id)
inner join sizes using (split)
where
    task_scores.score_name = $score
    and task_scores.is_complete
    and (
        len($splits::varchar[]) = 0
        or list_contains($splits::varchar[], split_members.split)
    )
    and (len($models::varchar[]) = 0 or list_contains($models::varchar[], model))
    and (len($judges::varchar[]) = 0 or list_contains($judges::varchar[], judge))
    and ($vintage::varchar is null or vintage = $vintage)
group by all
order by all
