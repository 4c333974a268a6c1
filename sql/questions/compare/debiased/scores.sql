-- One row: a model's score beside what labels make of it, on whole splits or
-- own hard selections, under one label or over the whole rubric.
select
    split,
    label,
    model,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model_config_hash,
    score_name,
    judge_score,
    judge_ci_low,
    judge_ci_high,
    labels_alone,
    labels_alone_ci_low,
    labels_alone_ci_high,
    debiased,
    debiased_ci_low,
    debiased_ci_high,
    judge_power,
    n_labels,
    n_tasks_labelled,
    n_tasks,
    n_people,
    effective_labels,
    n_unsampled_labels,
    unsampled_mean_error,
    no_figure
from debiased_scores
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and breakdown = $breakdown
    and is_own_hard = $is_hard
    and ($is_hard or $splits = [] or list_contains($splits::varchar[], split))
    and ($models = [] or list_contains($models::varchar[], model))
    and ($graders = [] or list_contains($graders::varchar[], judge))
    and case
        when $vintage::varchar is null then is_latest
        else $vintage::varchar in ('all', vintage)
    end
order by
    split, label, judge, judge_config_hash, template_hash, grading, judge_trial,
    coalesce(debiased, judge_score) desc, model, vintage
