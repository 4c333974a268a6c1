-- What changed in each model's latest sampling since its last comparable one,
-- over the tasks with a complete trial in both. Interval and p-value (corrected
-- for all rows) come from resampling tasks: `prbench diff EARLIER LATER --model
-- MODEL`.
-- begins with: changes, entries, judgings
with valued as (
    select * from task_scores
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and value is not null
),

members as (
    select split, task_id
    from staging.task_set_members
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and not is_own_hard
),

paired as (
    select
        changes.*,
        avg(first_side.value) as earlier_mean,
        avg(second_side.value) as later_mean,
        avg(second_side.value - first_side.value) as difference,
        count(*) as n_tasks
    from changes
    inner join members using (split)
    inner join valued as second_side
        on
            members.task_id = second_side.task_id
            and changes.later = second_side.vintage
            and changes.model = second_side.model
            and changes.model_config_hash = second_side.model_config_hash
            and changes.judge = second_side.judge
            and changes.judge_config_hash = second_side.judge_config_hash
            and changes.template_hash = second_side.template_hash
            and changes.grading = second_side.grading
            and changes.judge_trial = second_side.judge_trial
    inner join valued as first_side
        on
            second_side.task_id = first_side.task_id
            and changes.earlier = first_side.vintage
            and second_side.model = first_side.model
            and second_side.model_config_hash = first_side.model_config_hash
            and second_side.judge = first_side.judge
            and second_side.judge_config_hash = first_side.judge_config_hash
            and second_side.template_hash = first_side.template_hash
            and second_side.grading = first_side.grading
            and second_side.judge_trial = first_side.judge_trial
    group by all
)

select
    judgings.judging,
    entries.entry as model,
    paired.split,
    paired.earlier,
    paired.later,
    paired.earlier_mean,
    paired.later_mean,
    paired.difference,
    paired.ci_low,
    paired.ci_high,
    paired.p_adjusted,
    coalesce(paired.p_adjusted < 0.05, false) as is_significant,
    paired.n_tasks
from paired
inner join entries
    on
        paired.model = entries.model
        and paired.model_config_hash = entries.model_config_hash
        and paired.later = entries.vintage
inner join judgings
    using (judge, judge_config_hash, template_hash, grading, judge_trial)
order by judging <> $main, judging, split, p_adjusted nulls last, model
