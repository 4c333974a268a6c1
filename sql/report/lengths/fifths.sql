-- A model's answers in five groups of equal size, the shortest first: the mean
-- of their scores (equation 1, not clipped) in each group, beside the mean over
-- all five. Only answers that are decided in full count.
-- begins with: entries, judgings, shown_splits
with answers as (
    select
        judgings.judging,
        task_set_members.split,
        entries.entry as model,
        answered.task_id,
        answered.chars_alnum,
        answered.value,
        ntile(5) over (
            partition by judgings.judging, task_set_members.split, entries.entry
            order by answered.chars_alnum, answered.response_id
        ) as fifth
    from response_lengths as answered
    inner join staging.task_set_members
        using (benchmark, dataset_revision, task_id)
    inner join shown_splits using (split)
    inner join entries
        using (model, model_config_hash, vintage)
    inner join judgings
        using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where
        answered.benchmark = $benchmark
        and answered.dataset_revision = $revision
        and answered.score_name = $score
        and answered.is_complete
        and answered.chars_alnum is not null
        and not task_set_members.is_own_hard
),

fifths as (
    select
        judging,
        split,
        model,
        fifth,
        count(*) as n_answers,
        count(distinct task_id) as n_tasks,
        min(chars_alnum) as min_chars_alnum,
        max(chars_alnum) as max_chars_alnum,
        round(favg(value), 12) as mean_value
    from answers
    group by all
),

wholes as (
    select judging, split, model, round(favg(value), 12) as own_mean
    from answers
    group by all
),

final as (
    select
        judging,
        split,
        is_hard,
        model,
        fifth,
        n_answers,
        n_tasks,
        n_tasks < 50 as is_small,
        min_chars_alnum,
        max_chars_alnum,
        mean_value,
        own_mean,
        mean_value - own_mean as difference
    from fifths
    inner join wholes using (judging, split, model)
    inner join shown_splits using (split)
)

select * from final
order by
    judging <> $main,
    judging,
    is_hard,
    split,
    own_mean desc,
    model,
    fifth
