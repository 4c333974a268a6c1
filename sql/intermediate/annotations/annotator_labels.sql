-- One row: a label that an annotator gives a task, of one kind.
--
-- A label counts if more than half of the annotator's trials name it, as primary
-- or secondary. If there is none, the primary label of the first trial counts.
-- Only labels under the annotator's current configuration count.
--
-- built as: table
-- depends on: analysts, task_annotations
with current as (
    select task_annotations.*
    from task_annotations
    left join analysts
        on task_annotations.benchmark = analysts.benchmark
            and task_annotations.annotator = analysts.analyst
            and analysts.purpose = 'annotate'
    where status = 'ok'
        and annotator_config_hash = coalesce(analyst_config_hash, annotator_config_hash)
    -- Labels with the latest prompt count.
    qualify concat_ws(' ', annotator_config_hash, template_hash)
        = first_value(concat_ws(' ', annotator_config_hash, template_hash))
            over (
                partition by task_annotations.benchmark, dataset_revision, task_id, kind, annotator
                order by task_annotations.created_at desc, annotation_id
            )
),

trials as (
    select benchmark, dataset_revision, task_id, kind, annotator,
        count(*) as n_trials,
        arg_min(primary_label, trial) as first_label
    from current
    group by all
),

named as (
    select benchmark, dataset_revision, task_id, kind, annotator,
        unnest(list_prepend(primary_label, secondary_labels)) as label,
        generate_subscripts(list_prepend(primary_label, secondary_labels), 1) = 1 as is_primary
    from current
)

select
    benchmark,
    dataset_revision,
    task_id,
    kind,
    annotator,
    label,
    n_trials,
    count(*) filter (is_primary) as n_primary
from named
inner join trials using (benchmark, dataset_revision, task_id, kind, annotator)
group by benchmark, dataset_revision, task_id, kind, annotator, label, first_label, n_trials
window same as (partition by benchmark, dataset_revision, task_id, kind, annotator)
qualify 2 * count(*) > n_trials or (label = first_label and 2 * max(count(*)) over same <= n_trials)
