-- How many admitted tasks an annotator labelled, of each kind of label, and how
-- many calls failed.
with admitted as (
    select task_id
    from tasks
    where benchmark = $benchmark and dataset_revision = $revision and is_admitted
),

asked as (
    select kind, annotator,
        count(distinct task_id) filter (status = 'ok') as n_tasks,
        count(*) filter (status = 'ok') as n_annotations,
        count(*) filter (status <> 'ok') as n_failed,
        known_cost(
            exact_sum(cost_usd),
            count(*) filter (cost_usd is null and attempts > 0)
        ) as cost_usd
    from task_annotations
    semi join admitted using (task_id)
    where benchmark = $benchmark and dataset_revision = $revision
    group by all
),

used as (
    select kind,
        count(distinct task_id) filter (source = 'annotated') as n_used,
        count(distinct task_id) filter (source = 'released') as n_released
    from labelled_tasks
    semi join admitted using (task_id)
    where benchmark = $benchmark and dataset_revision = $revision
    group by kind
)

select kind, annotator, n_tasks, n_annotations, n_failed, n_released, n_used, cost_usd
from asked
left join used using (kind)
order by kind, annotator
