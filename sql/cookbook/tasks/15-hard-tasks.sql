-- Which tasks are hard, how surely, and in which topic?
select hard_subset.field, hard_subset.rank, tasks.topic, hard_subset.task_id,
    round(hard_subset.mean_score, 3) as mean_score,
    hard_subset.n_models,
    round(hard_stability.inclusion_probability, 3) as inclusion_probability,
    hard_stability.is_border
from hard_subset
inner join tasks using (benchmark, dataset_revision, task_id)
left join hard_stability using (selection_id, task_id)
where hard_subset.selection_id in (
    select arg_max(selection_id, selected_at)
    from hard_subset
    group by benchmark, dataset_revision, field
)
order by hard_subset.field, hard_subset.rank
