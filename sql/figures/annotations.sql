-- name: agreement
-- Agreement of an annotator with the released labels, or of two annotators: on
-- each label, or on average.
select
    agreement_id,
    kind,
    annotator,
    compared_with,
    label,
    n_tasks,
    n_annotated,
    n_compared_with,
    n_both,
    precision,
    precision_ci_low,
    precision_ci_high,
    recall,
    recall_ci_low,
    recall_ci_high,
    f1,
    f1_ci_low,
    f1_ci_high,
    jaccard,
    jaccard_ci_low,
    jaccard_ci_high,
    annotator || ' with ' || compared_with as comparison,
    n_tasks < 50 as is_small
from annotation_agreement
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    -- The names of averages are in parentheses.
    and starts_with(label, '(') = $is_average
    and n_annotated + n_compared_with > 0
order by kind, compared_with <> 'released', annotator, compared_with, label;

-- name: annotators
-- Number of admitted tasks that each annotator labelled, by kind of label, and
-- number of failed calls.
--
-- with: revision/revision_labelled_tasks, revision/revision_tasks
with admitted as (
    select task_id
    from revision_tasks
    where is_admitted
),

calls as (
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
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by all
),

used as (
    select kind,
        count(distinct task_id) filter (source = 'annotated') as n_used,
        count(distinct task_id) filter (source = 'released') as n_released
    from revision_labelled_tasks
    semi join admitted using (task_id)
    group by kind
)

select
    kind,
    annotator,
    n_tasks,
    n_annotations,
    n_failed,
    n_released,
    n_used,
    cost_usd
from calls
left join used using (kind)
order by kind, annotator;
