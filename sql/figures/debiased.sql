-- name: scores
-- Each model's score under a judge beside what labels make of it, on each
-- split: over the whole rubric, or by category.
select judgings.judging, split, is_hard,
    entries.entry as model,
    nullif(label, '') as label,
    score_name, judge_score, judge_ci_low, judge_ci_high, labels_alone, labels_alone_ci_low,
    labels_alone_ci_high, debiased, debiased_ci_low, debiased_ci_high, judge_power, n_labels,
    n_tasks_labelled, n_tasks, n_people, n_unsampled_labels, unsampled_mean_error,
    case
        when no_figure is null and debiased is null then 'not computed yet'
        else no_figure
    end as no_figure
from debiased_scores
inner join shown_splits using (split)
inner join entries using (model, model_config_hash, vintage)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
where benchmark = $benchmark
    and dataset_revision = $revision
    and not is_own_hard
    and breakdown = $breakdown
    and score_name = if($breakdown = 'all', $score, $label_score)
order by judging <> $main, judging, is_hard, split, label nulls first,
    round(coalesce(debiased, judge_score), 9) desc, model;
