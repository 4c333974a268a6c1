-- Rank correlation of length and score: of each model over its tasks, and over
-- the models.
select
    split,
    coalesce(model, '(over the models)') as model,
    measure,
    rank_correlation,
    ci_low,
    ci_high,
    is_small,
    n,
    judge,
    judge_trial,
    vintage,
    score_name
from length_correlations
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and score_name = $score
    and is_own_hard = $is_hard
    and (
        len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split)
        or $is_hard
    )
    and (
        model is null or len($models::varchar[]) = 0
        or list_contains($models::varchar[], model)
    )
    and counts_as_judge(
        $judges, benchmark, dataset_revision, judge, judge_config_hash
    )
    and ($vintage::varchar is null or vintage = $vintage)
    -- As they were asked for: the binary reading of three steps says the same.
    and grading <> 'ternary_as_binary'
order by split, judge, judge_trial, vintage, level, measure, model
