-- Every task of a revision, with what its rubric and its conversation are like.
with positive as (
    select task_id, count(*) as n_positive
    from criteria
    where benchmark = $benchmark and dataset_revision = $revision and weight > 0
    group by task_id
),

unknown_labels as (
    select tasks.task_id, list(distinct named.label) as labels, count(*) as n_labels
    from tasks
    cross join
        lateral (
            select 'decision_type' as kind, unnest(tasks.decision_types) as label
            union all
            select 'economic_pathway' as kind, unnest(tasks.economic_pathways) as label
            union all
            select task_labels.kind, task_labels.label
            from task_labels
            where task_labels.benchmark = tasks.benchmark
                and task_labels.dataset_revision = tasks.dataset_revision
                and task_labels.task_id = tasks.task_id
                -- A kind without a vocabulary may say anything.
                and task_labels.kind in (
                    select labels.kind from labels
                    where labels.benchmark = tasks.benchmark
                )
        ) as named
    anti join labels
        on tasks.benchmark = labels.benchmark
            and labels.field in ('', coalesce(tasks.field, ''))
            and named.kind = labels.kind
            and named.label = labels.label
    where tasks.benchmark = $benchmark and tasks.dataset_revision = $revision
    group by tasks.task_id
)

select
    tasks.task_id as key,
    tasks.task_id,
    tasks.n_criteria || ' criteria, ' || coalesce(positive.n_positive, 0)
    || ' positive; turns ' || coalesce(tasks.turns::varchar, 'missing')
    || ' as ' || tasks.turn_pattern || '; id in ' || tasks.n_rows || ' row(s)'
    || coalesce('; unknown ' || unknown_labels.labels::varchar, '') as note,
    tasks.n_criteria,
    coalesce(positive.n_positive, 0) as n_positive,
    tasks.n_rows, tasks.turn_pattern,
    tasks.turns::double as turns,
    len(regexp_replace(tasks.turn_pattern, '[^ue]', '', 'g'))::double as n_user_turns,
    coalesce(unknown_labels.n_labels, 0) as n_unknown_labels
from tasks
left join positive using (task_id)
left join unknown_labels using (task_id)
where tasks.benchmark = $benchmark and tasks.dataset_revision = $revision
order by tasks.task_id
