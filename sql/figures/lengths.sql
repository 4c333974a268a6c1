-- name: length_fifths
-- A model's responses in five groups of equal size, the shortest first: the mean
-- of their scores (equation 1, not clipped) in each group, and the mean over all
-- five. Only completely decided responses count.
with grouped as (
    select judge_config, split, is_hard,
        entry as model,
        task_id, chars_alnum, value,
        ntile(5) over (
            partition by judge_config, split, entry
            order by chars_alnum, response_id
        ) as fifth,
        favg(value) over (partition by judge_config, split, entry) as whole_mean
    from scoped_response_lengths
    inner join scoped_task_set_members using (benchmark, dataset_revision, task_id)
    semi join scoped_displayed_scores using (judge_config, entry, split, is_own_hard)
    where score_name = $score and is_complete and chars_alnum is not null
)

select judge_config, split, is_hard, model, fifth,
    count(*) as n_responses,
    count(distinct task_id) as n_tasks,
    n_tasks < 50 as is_small,
    min(chars_alnum) as min_chars_alnum,
    max(chars_alnum) as max_chars_alnum,
    round(exact_avg(value), 12) as mean_value,
    round(any_value(whole_mean), 12) as own_mean,
    mean_value - own_mean as difference
from grouped
group by judge_config, split, is_hard, model, fifth
order by judge_config <> $main, judge_config, is_hard, split, own_mean desc, model, fifth;

-- name: length_correlations
-- Spearman's rank correlation of length and score: of each model over its tasks
-- (level `tasks`), or over the models of one sampling (`models`), under one
-- judge. With two models it is always 1 or -1, so it has no meaning.
select shown_judge_configs.judge_config, split, shown_sets.is_hard,
    coalesce(entries.entry, '(over the models)') as model,
    measure,
    if(measure = 'chars_alnum', 'letters and digits', 'tokens') as length_in,
    rank_correlation, ci_low, ci_high, is_small, n, level, score_name, vintage,
    correlations.model as model_label,
    model_config_hash, judge, judge_trial, grading, judge_config_hash, template_hash
from length_correlations as correlations
inner join shown_sets using (split, is_own_hard)
inner join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
left join entries using (model, model_config_hash, vintage)
left join (select distinct judge_config, entry, split, is_own_hard from scoped_displayed_scores)
    as shown_scores using (judge_config, entry, split, is_own_hard)
where correlations.benchmark = $benchmark
    and correlations.dataset_revision = $dataset_revision
    and score_name = $score
    and ($level::varchar is null or level = $level)
    and (
        shown_scores.entry is not null
        or (
            level = 'models'
            and (n > 2 or $level::varchar is null)
            and vintage in (select entries.vintage from entries)
        )
    )
order by judge_config <> $main, judge_config, is_hard, split, measure, level desc, vintage,
    rank_correlation desc nulls last, model;
