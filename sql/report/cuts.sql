-- The mean score under each label of one cut, on each split and under each judge; labels with the best means first.
-- A part of a rubric, as a category is, has the score that parts have which hold nothing but negative weights.
select
    judging,
    split,
    list_contains($hard_splits::varchar[], split) as is_hard,
    label,
    if(is_latest, latest_rank, rank) as rank,
    entry as model,
    score_name,
    mean_score,
    ci_low,
    ci_high,
    -- Only where clipping hides it.
    if(raw_ci_low < ci_low or raw_mean_score < mean_score, raw_mean_score, null)
        as raw_mean_score,
    if(raw_ci_low < ci_low, raw_ci_low, null) as raw_ci_low,
    if(raw_ci_low < ci_low, raw_ci_high, null) as raw_ci_high,
    is_small,
    mean_lower,
    mean_upper,
    n_tasks,
    n_tasks_wanted,
    coverage
from board_figures
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
inner join $judgings as judgings (
    judge, judge_config_hash, template_hash, grading, judge_trial, judging
) using (judge, judge_config_hash, template_hash, grading, judge_trial)
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and cut = $cut
    and score_name = if($of_criteria, $part_score, $score)
    and not is_own_hard
    and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    try_cast(label as integer) nulls last,
    -- What is equal but for rounding is a tie.
    round(avg(mean_score) over (partition by judging, split, label), 9)
        desc nulls last,
    label,
    rank nulls last,
    model
