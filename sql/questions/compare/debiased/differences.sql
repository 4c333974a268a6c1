-- One row: the difference of two models beside what labels make of it, the
-- second minus the first.
with turned as (
    select
        *,
        case when model_a = $first then 1 else -1 end as sign
    from debiased_differences
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and breakdown = 'all'
        and is_own_hard = $is_hard
        and (
            $is_hard or $splits = [] or list_contains($splits::varchar[], split)
        )
        and ($graders = [] or list_contains($graders::varchar[], judge))
        and ($vintage::varchar is null or vintage = $vintage)
        and (
            (model_a = $first and list_contains($others::varchar[], model_b))
            or (model_b = $first and list_contains($others::varchar[], model_a))
        )
)

select
    $first as first_model,
    case when sign = 1 then model_b else model_a end as second_model,
    split,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    score_name,
    sign * judge_difference as judge_difference,
    sign * labels_alone_difference as labels_alone_difference,
    case
        when sign = 1 then labels_alone_ci_low else -labels_alone_ci_high
    end as labels_alone_ci_low,
    case
        when sign = 1 then labels_alone_ci_high else -labels_alone_ci_low
    end as labels_alone_ci_high,
    sign * debiased_difference as debiased_difference,
    case when sign = 1 then debiased_ci_low else -debiased_ci_high end
        as debiased_ci_low,
    case when sign = 1 then debiased_ci_high else -debiased_ci_low end
        as debiased_ci_high,
    case when sign = 1 then n_labels_a else n_labels_b end as n_labels_first,
    case when sign = 1 then n_labels_b else n_labels_a end as n_labels_second,
    n_tasks,
    no_figure
from turned
order by split, list_position($others::varchar[], second_model), judge, vintage
