-- name: debiased_differences
-- The difference of each other model and the first (second minus first), and the
-- same corrected by labels.
with turned as (
    select *,
        if(model_a = $first, 1, -1) as sign,
        if(model_a = $first, model_b, model_a) as second_model
    from debiased_differences
    inner join $shown_sets using (split, is_own_hard)
    natural join $shown_judge_configs
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and score_name = $score
        and breakdown = 'all'
        and ($vintage is null or $vintage in ('all', vintage))
        and $first in (model_a, model_b)
        and list_contains($others, second_model)
)

select
    judge_config,
    split,
    $first as first_model,
    second_model,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    score_name,
    sign * judge_difference as judge_difference,
    sign * labels_alone_difference as labels_alone_difference,
    if(sign = 1, labels_alone_ci_low, -labels_alone_ci_high) as labels_alone_ci_low,
    if(sign = 1, labels_alone_ci_high, -labels_alone_ci_low) as labels_alone_ci_high,
    sign * debiased_difference as debiased_difference,
    if(sign = 1, debiased_ci_low, -debiased_ci_high) as debiased_ci_low,
    if(sign = 1, debiased_ci_high, -debiased_ci_low) as debiased_ci_high,
    if(sign = 1, n_labels_a, n_labels_b) as n_labels_first,
    if(sign = 1, n_labels_b, n_labels_a) as n_labels_second,
    n_tasks,
    no_figure
from turned
order by split, list_position($others, second_model), judge_config <> $main,
    judge_config, vintage;

-- name: debiased_scores
-- Scores of the whole rubric or by category: the judge's, from labels alone, and
-- debiased.
--
-- with: figures/shared/shown_runs
select
    judge_config,
    split,
    is_hard,
    -- An entry is a sampling of a model; it is shown as the model.
    entry as model,
    model as model_label,
    is_own_hard,
    breakdown,
    nullif(label, '') as label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    score_name,
    is_primary,
    n_tasks,
    n_tasks_wanted,
    n_trials,
    coverage,
    is_latest,
    n_labels,
    n_tasks_labelled,
    n_people,
    n_unsampled_labels,
    unsampled_mean_error,
    n_tasks_uncovered,
    judge_score,
    judge_ci_low,
    judge_ci_high,
    debiased,
    debiased_ci_low,
    debiased_ci_high,
    labels_alone,
    labels_alone_ci_low,
    labels_alone_ci_high,
    judge_power,
    effective_labels,
    expected_score,
    expected_score_ci_low,
    expected_score_ci_high,
    expected_difference,
    if(no_figure is null and debiased is null, 'not computed yet', no_figure) as no_figure
from debiased_scores
inner join $shown_sets using (split, is_own_hard)
natural join shown_runs
where (is_latest or $vintage is not null)
    and breakdown = $breakdown
    and score_name = if($breakdown = 'all', $score, $label_score)
order by judge_config <> $main, judge_config, is_hard, split, label nulls first,
    round(coalesce(debiased, judge_score), 9) desc, model;
