-- A criterion is compared if both sides decided it, on tasks with a complete trial
-- on both sides, by the mean over their complete trials. The points of a change
-- are the criterion's weight times the change of its value.
--
-- built as: view
-- depends on: intermediate.condition_pairs, intermediate.current_verdicts,
--     intermediate.response_points, criteria
with sides as (
    select pairs.*,
        unnest([false, true]) as is_baseline,
        unnest([model_run_id, baseline_run_id]) as side_run_id
    from intermediate.condition_pairs as pairs
),

complete as (
    select sides.pair_id, sides.is_baseline, sides.judging_id, points.response_id, points.trial
    from sides
    inner join intermediate.response_points as points on sides.side_run_id = points.model_run_id
    where points.breakdown = 'all' and points.is_counted and points.n_decided = points.n_wanted
),

decided as (
    select complete.pair_id, complete.is_baseline, verdicts.task_id, verdicts.criterion_id,
        verdicts.category, verdicts.weight,
        list(verdicts.value order by complete.trial) as by_trial
    from complete
    inner join intermediate.current_verdicts as verdicts using (response_id, judging_id)
    where verdicts.value is not null and verdicts.weight is not null
    group by all
),

baselines as (
    from decided
    where is_baseline
),

changed as (
    from decided
    where not is_baseline
)

select
    benchmark,
    dataset_revision,
    pairs.judge,
    pairs.judge_config_hash,
    pairs.template_hash,
    pairs.grading,
    pairs.judge_trial,
    pairs.vintage,
    pairs.is_latest,
    pairs.shared_model,
    pairs.condition,
    pairs.position,
    pairs.baseline,
    pairs.model,
    pairs.model_config_hash,
    pairs.baseline_model,
    pairs.baseline_config_hash,
    task_id,
    criterion_id,
    criteria.title,
    changed.category,
    changed.weight,
    list_aggregate(baselines.by_trial, 'favg') as baseline_value,
    list_aggregate(changed.by_trial, 'favg') as value,
    baselines.by_trial as baseline_by_trial,
    changed.by_trial,
    changed.weight * (value - baseline_value) as points,
    value <> baseline_value as is_changed
from changed
inner join baselines using (pair_id, task_id, criterion_id)
inner join intermediate.condition_pairs as pairs using (pair_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
