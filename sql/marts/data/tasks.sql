-- built as: table
-- depends on: labelled_tasks, checks, quarantine, split_members, task_rows
with checked_revisions as (
    -- If a split was added later and is not checked yet, all tasks wait for the check.
    select benchmark, dataset_revision, arg_max(n_evaluated, created_at) as n_tasks
    from checks
    where suite = 'ingest' and table_name = 'rubrics'
    group by all
    intersect
    select benchmark, dataset_revision, count(*)
    from task_rows
    group by all
),

memberships as (
    select benchmark, dataset_revision, task_id, list(split order by split) as splits
    from split_members
    group by all
),

annotated as (
    select benchmark, dataset_revision, task_id,
        list(label order by label) filter (kind = 'decision_type') as decision_types,
        list(label order by label) filter (kind = 'economic_pathway') as economic_pathways
    from labelled_tasks
    where source = 'annotated'
    group by all
)

select
    benchmark,
    dataset_revision,
    task_id,
    task_rows.field,
    task_rows.topic,
    task_rows.expert,
    task_rows.turns,
    memberships.splits,
    coalesce(annotated.decision_types, task_rows.decision_types) as decision_types,
    coalesce(annotated.economic_pathways, task_rows.economic_pathways) as economic_pathways,
    task_rows.n_criteria,
    task_rows.positive_weight,
    task_rows.negative_weight,
    task_rows.has_reference_texts,
    -- A task is admitted if it was checked and not refused.
    checked_revisions.n_tasks is not null
    and (benchmark, dataset_revision, task_id) not in (
        select (benchmark, dataset_revision, task_id) from quarantine
    ) as is_admitted,
    task_rows.conversation_id,
    task_rows.turn_pattern,
    task_rows.n_rows,
    task_rows.content_hash,
    case
        when annotated.decision_types is not null then 'annotated'
        when len(task_rows.decision_types) > 0 then 'released'
    end as decision_types_source,
    case
        when annotated.economic_pathways is not null then 'annotated'
        when len(task_rows.economic_pathways) > 0 then 'released'
    end as economic_pathways_source
from task_rows
inner join memberships using (benchmark, dataset_revision, task_id)
left join checked_revisions using (benchmark, dataset_revision)
left join annotated using (benchmark, dataset_revision, task_id)
