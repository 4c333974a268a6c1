-- What some tasks ask: the conversation as it is sent, and the criteria, as
-- JSON.
with turns as (
    select
        task_id,
        to_json(list({
            role: role,
            content: content
        } order by position)) as conversation
    from messages
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and task_id in (select unnest($tasks::varchar[]))
    group by task_id
),

further as (
    select
        task_id,
        criterion_id,
        list({'kind': kind, 'label': label} order by kind, label) as labels
    from criterion_labels
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and task_id in (select unnest($tasks::varchar[]))
    group by task_id, criterion_id
),

rubrics as (
    select
        task_id,
        to_json(list({
            position: position,
            key: left(sha256(criterion_id), 16),
            criterion_id: criterion_id,
            title: title,
            category: category,
            severity: severity,
            weight: weight,
            labels: coalesce(further.labels, [])
        } order by position)) as criteria
    from criteria
    left join further using (task_id, criterion_id)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and task_id in (select unnest($tasks::varchar[]))
    group by task_id
)

select
    task_id,
    coalesce(turns.conversation, '[]') as conversation,
    coalesce(rubrics.criteria, '[]') as criteria
from rubrics
left join turns using (task_id)
order by task_id
