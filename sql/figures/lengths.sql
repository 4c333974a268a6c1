-- name: length_fifths
-- A model's answers in five groups of equal size, the shortest first: the mean
-- of their scores (equation 1, not clipped) in each group, beside the mean over
-- all five. Only answers that are decided in full count.
with answers as (
    select judgings.judging, split, shown_splits.is_hard,
        entries.entry as model,
        task_id, chars_alnum, value,
        ntile(5) over (
            partition by judgings.judging, split, entries.entry
            order by chars_alnum, response_id
        ) as fifth,
        favg(value) over (partition by judgings.judging, split, entries.entry) as whole_mean
    from response_lengths
    inner join staging.task_set_members using (benchmark, dataset_revision, task_id)
    inner join shown_splits using (split)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and is_complete
        and chars_alnum is not null
        and not is_own_hard
)

select judging, split, is_hard, model, fifth,
    count(*) as n_answers,
    count(distinct task_id) as n_tasks,
    n_tasks < 50 as is_small,
    min(chars_alnum) as min_chars_alnum,
    max(chars_alnum) as max_chars_alnum,
    round(exact_avg(value), 12) as mean_value,
    round(any_value(whole_mean), 12) as own_mean,
    mean_value - own_mean as difference
from answers
group by judging, split, is_hard, model, fifth
order by judging <> $main, judging, is_hard, split, own_mean desc, model, fifth;

-- name: length_models
-- Spearman's rank correlation of mean length and mean score over the models of
-- one sampling, under one judge; over two models it is always 1 or -1, which
-- says nothing.
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
order by judging <> $main, judging, is_hard, split, vintage;

-- name: length_score
-- Mean length of the answers (letters and digits) beside the mean score, on
-- each split and under each judge.
select judging, split, is_hard,
    entry as model,
    mean_chars_alnum, mean_completion_tokens, mean_score, ci_low, ci_high, is_small, n_tasks,
    n_tasks_wanted, coverage
from shown_scores
inner join shown_splits using (split)
where score_name = $score and breakdown = 'all' and is_judged and not is_own_hard
order by judging <> $main, judging, is_hard, split, mean_score desc nulls last, entry;

-- name: length_tasks
-- Spearman's rank correlation of length and score over the tasks of one model,
-- under one judge.
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
order by judging <> $main, judging, is_hard, split, chars_correlation desc nulls last, model;
