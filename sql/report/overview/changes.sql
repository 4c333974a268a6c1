-- What changed in each model's latest sampling since its last comparable one,
-- over the tasks with a complete trial in both. Interval and p-value (corrected
-- for all rows) come from resampling tasks: `prbench diff EARLIER LATER --model
-- MODEL`.
-- begins with: changes, entries, judgings
with valued as (
    select * from task_scores
    where benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and value is not null
),

members as (
    select split, task_id
    from staging.task_set_members
    where benchmark = $benchmark and dataset_revision = $revision and not is_own_hard
),

paired as (
    select changes.*,
        round(exact_avg(first_side.value), 12) as earlier_mean,
        round(exact_avg(second_side.value), 12) as later_mean,
        round(exact_avg(second_side.value - first_side.value), 12) as difference,
        count(*) as n_tasks
    from changes
    inner join members using (split)
    inner join valued as second_side
        using (
            model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
            task_id
        )
    inner join valued as first_side
        using (
            model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
            task_id
        )
    where second_side.vintage = changes.later and first_side.vintage = changes.earlier
    group by all
)

select judgings.judging,
    entries.entry as model,
    paired.split, paired.earlier, paired.later, paired.earlier_mean, paired.later_mean,
    paired.difference, paired.ci_low, paired.ci_high, paired.p_adjusted,
    coalesce(paired.p_adjusted <= 0.05, false) as is_significant,
    paired.n_tasks
from paired
inner join entries
    on paired.model = entries.model
        and paired.model_config_hash = entries.model_config_hash
        and paired.later = entries.vintage
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
order by judging <> $main, judging, split, p_adjusted nulls last, model
