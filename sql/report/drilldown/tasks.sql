-- The admitted tasks of the chosen splits in their order, with what they are
-- found by.
-- begins with: shown_tasks
with categories as (
    select task_id, list(distinct category order by category) as categories
    from criteria
    where benchmark = $benchmark and dataset_revision = $revision and category is not null
    group by task_id
),

further as (
    select task_id, list({'kind': kind, 'label': label} order by kind, label) as labels
    from labelled_tasks
    where benchmark = $benchmark
        and dataset_revision = $revision
        and kind not in ('decision_type', 'economic_pathway')
    group by task_id
),

own_hard as (
    select distinct task_id
    from staging.task_set_members
    where benchmark = $benchmark and dataset_revision = $revision and is_own_hard
),

openings as (
    select task_id, prompt
    from conversation_turns
    where benchmark = $benchmark and dataset_revision = $revision and position = 0
)

select tasks.task_id, tasks.field, tasks.topic, tasks.expert, tasks.turns, tasks.splits,
    tasks.decision_types, tasks.economic_pathways, categories.categories,
    coalesce(further.labels, []) as labels,
    tasks.n_criteria,
    own_hard.task_id is not null as is_hard,
    left(openings.prompt, $n_characters) as opening
from tasks
semi join shown_tasks on tasks.task_id = shown_tasks.task_id
left join categories using (task_id)
left join further using (task_id)
left join own_hard using (task_id)
left join openings using (task_id)
where tasks.benchmark = $benchmark and tasks.dataset_revision = $revision and tasks.is_admitted
order by tasks.field nulls last, tasks.task_id
