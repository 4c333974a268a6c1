-- The last look at each comparison, under the configuration of that look.
--
-- built as: view
-- depends on: stopping_looks
select
    stopping_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    score_name,
    model,
    model_config_hash,
    vintage,
    compared_model,
    compared_config_hash,
    compared_vintage,
    block,
    n_tasks,
    n_tasks_evaluated,
    n_tasks_planned,
    sequence_low,
    sequence_high,
    comparison_alpha,
    least_difference,
    decision,
    round(mean_difference, 12) as mean_difference,
    round(unbiased_difference, 12) as unbiased_difference,
    n_tasks_planned - n_tasks_evaluated as n_tasks_skipped,
    decision <> 'open' as is_decided,
    created_at as looked_at
from stopping_looks
qualify row_number() over (
    partition by benchmark, dataset_revision, judge, judge_config_hash,
        template_hash, grading, judge_trial, score_name, model,
        model_config_hash, vintage, compared_model, compared_config_hash, compared_vintage
    order by created_at desc, block desc
) = 1
