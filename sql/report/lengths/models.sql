-- Spearman's rank correlation of mean length and mean score over the models of
-- one sampling, under one judge; over two models it is always 1 or -1, which
-- says nothing.
-- begins with: entries, judgings, shown_splits
with shown as (
    select distinct entries.vintage
    from entries
),

correlated as (
    select judgings.judging, split, is_hard, vintage,
        any_value(n) filter (measure = 'chars_alnum') as n_chars,
        any_value(rank_correlation) filter (measure = 'chars_alnum') as chars_correlation,
        any_value(ci_low) filter (measure = 'chars_alnum') as chars_ci_low,
        any_value(ci_high) filter (measure = 'chars_alnum') as chars_ci_high,
        any_value(n) filter (measure = 'completion_tokens') as n_tokens,
        any_value(rank_correlation) filter (measure = 'completion_tokens') as tokens_correlation,
        any_value(ci_low) filter (measure = 'completion_tokens') as tokens_ci_low,
        any_value(ci_high) filter (measure = 'completion_tokens') as tokens_ci_high,
        bool_or(is_small) as is_small
    from length_correlations
    inner join shown_splits using (split)
    semi join shown using (vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and level = 'models'
        and n > 2
        and not is_own_hard
    group by all
)

select * from correlated
order by judging <> $main, judging, is_hard, split, vintage
