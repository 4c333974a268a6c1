-- One row: a task's score under a condition and under its baseline, over the
-- whole rubric (breakdown `all`) or one category; only tasks with a complete
-- trial on both sides.
--
-- built as: view
-- depends on: intermediate.condition_pairs, intermediate.task_values
select
    pairs.benchmark,
    pairs.dataset_revision,
    changed.task_id,
    hash(pairs.pair_id, changed.breakdown, changed.label, changed.score_name) as comparison_id,
    baseline.value as baseline_value,
    changed.value
from intermediate.condition_pairs as pairs
inner join intermediate.task_values as changed using (model_run_id)
inner join intermediate.task_values as baseline using (label_key, score_name)
where pairs.baseline_run_id = baseline.model_run_id
    and changed.breakdown in ('all', 'category')
    and changed.value is not null
    and baseline.value is not null
