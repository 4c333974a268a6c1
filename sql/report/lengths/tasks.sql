-- Spearman's rank correlation of length and score over the tasks of one model,
-- under one judge.
-- begins with: entries, judgings, shown_splits
with correlated as (
    select judgings.judging, split, is_hard,
        entries.entry as model,
        any_value(rank_correlation) filter (measure = 'chars_alnum') as chars_correlation,
        any_value(ci_low) filter (measure = 'chars_alnum') as chars_ci_low,
        any_value(ci_high) filter (measure = 'chars_alnum') as chars_ci_high,
        any_value(n) filter (measure = 'chars_alnum') as n_chars,
        any_value(rank_correlation) filter (measure = 'completion_tokens') as tokens_correlation,
        any_value(ci_low) filter (measure = 'completion_tokens') as tokens_ci_low,
        any_value(ci_high) filter (measure = 'completion_tokens') as tokens_ci_high,
        bool_or(is_small) as is_small,
        any_value(n) filter (measure = 'completion_tokens') as n_tokens
    from length_correlations
    inner join shown_splits using (split)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and level = 'tasks'
        and not is_own_hard
    group by all
)

select * from correlated
order by judging <> $main, judging, is_hard, split, chars_correlation desc nulls last, model
