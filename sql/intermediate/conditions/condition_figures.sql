-- One row: a paired difference between a condition and its baseline, before its
-- interval and test: on a task set, over the whole rubric or one category.
--
-- Means are before any clipping, as in `prbench diff`. `basis` changes when a
-- value of a task does.
--
-- built as: view
-- depends on: intermediate.breakdown_sizes, intermediate.condition_pairs,
--     intermediate.condition_values, intermediate.current_vintages, intermediate.task_set_members
with compared as (
    select task_set_id, comparison_id,
        count(*) as n_tasks,
        round(exact_avg(baseline_value), 12) as baseline_mean_score,
        round(exact_avg(value), 12) as mean_score,
        bit_xor(hash(task_id, baseline_value, value))::varchar as basis
    from intermediate.condition_values
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    group by all
),

wanted as (
    select
        pairs.* replace (
            row_number() over (
                partition by sizes.task_set_id, sizes.breakdown, sizes.label, sizes.score_name,
                    pairs.judging_id, shared_model, condition
                order by coalesce(changed.is_latest and baseline.is_latest, false) desc,
                    changed.first_response_at desc, pairs.vintage desc
            ) = 1 as is_latest
        ),
        sizes.task_set_id, sizes.split, sizes.is_own_hard, sizes.breakdown, sizes.label,
        sizes.score_name, sizes.n_tasks_wanted,
        hash(pairs.pair_id, sizes.breakdown, sizes.label, sizes.score_name) as comparison_id
    from intermediate.condition_pairs as pairs
    inner join intermediate.breakdown_sizes as sizes using (benchmark, dataset_revision)
    left join intermediate.current_vintages as changed
        on sizes.task_set_id = changed.task_set_id and pairs.model_run_id = changed.model_run_id
    left join intermediate.current_vintages as baseline
        on sizes.task_set_id = baseline.task_set_id
            and pairs.baseline_run_id = baseline.model_run_id
    where sizes.breakdown in ('all', 'category') and not sizes.is_expected
)

select
    samplings_id,
    shared_model,
    condition,
    position,
    baseline,
    ranking_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    n_trials,
    baseline_model,
    baseline_config_hash,
    baseline_n_trials,
    is_latest,
    task_set_id,
    split,
    is_own_hard,
    breakdown,
    label,
    score_name,
    n_tasks_wanted,
    comparison_id,
    coalesce(compared.n_tasks, 0) as n_tasks,
    compared.baseline_mean_score,
    compared.mean_score,
    compared.mean_score - compared.baseline_mean_score as difference,
    compared.basis,
    figure_key([
        'condition', benchmark, dataset_revision, split, is_own_hard::varchar, breakdown, label,
        judge, judge_config_hash, template_hash, grading, judge_trial::varchar, vintage, model,
        model_config_hash, baseline_model, baseline_config_hash, score_name
    ]) as figure_id
from wanted
left join compared using (task_set_id, comparison_id)
