-- Which topics are hard: the share of a topic's tasks that the hard selection
-- of the field took, of those to choose from.
select known.field,
    coalesce(tasks.topic, '(none)') as topic,
    count(*) filter (known.is_selected) as n_selected,
    count(*) as n_chosen_from,
    n_selected / n_chosen_from as selected_share,
    avg(known.mean_score order by known.task_id) as mean_score
from hard_stability as known
inner join tasks using (benchmark, dataset_revision, task_id)
where benchmark = $benchmark
    and dataset_revision = $revision
    and list_contains($selections::varchar[], known.selection_id)
group by known.field, coalesce(tasks.topic, '(none)')
order by known.field, selected_share desc, topic
