-- How does each condition score against its baseline, over the whole rubric and
-- by category?
select *
from condition_differences
where
    benchmark = $benchmark
    and dataset_revision = $revision
    -- As the judge was asked, as in `prbench diff`.
    and grading <> 'ternary_as_binary'
    and is_own_hard = $is_hard
    and (
        $is_hard
        or len($splits::varchar[]) = 0
        or list_contains($splits::varchar[], split)
    )
    and (
        len($models::varchar[]) = 0
        or list_contains($models::varchar[], model)
        or list_contains($models::varchar[], shared_model)
    )
    and counts_as_judge(
        $judges, benchmark, dataset_revision, judge, judge_config_hash
    )
    and (
        $vintage::varchar = 'all' or vintage = $vintage
        or ($vintage::varchar is null and is_latest)
    )
    -- Nothing is said of a split that neither side was asked.
    and n_answers + baseline_n_answers > 0
    and score_name = if(breakdown = 'all', $score, $label_score)
order by
    split,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash,
    vintage,
    breakdown,
    shared_model,
    position,
    label
