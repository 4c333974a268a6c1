-- The tasks behind each significant change: for each model and judge the ten
-- that went furthest the same way.
-- begins with: changes, entries, judgings, shown_tasks
with significant as (
    select distinct model, model_config_hash, judge, judge_config_hash, template_hash, grading,
        judge_trial, earlier, later
    from changes
    where p_adjusted <= 0.05
),

valued as (
    select * from task_scores
    semi join shown_tasks using (task_id)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and value is not null
),

paired as (
    select significant.*, task_id,
        first_side.value as earlier_score,
        second_side.value as later_score,
        second_side.value - first_side.value as difference,
        avg(second_side.value - first_side.value) over (
            partition by model, model_config_hash, judge, judge_config_hash,
                template_hash, grading, judge_trial
        ) as mean_difference
    from significant
    inner join valued as second_side
        using (
            model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial
        )
    inner join valued as first_side
        using (
            model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
            task_id
        )
    where second_side.vintage = significant.later and first_side.vintage = significant.earlier
)

select judgings.judging,
    entries.entry as model,
    paired.task_id, tasks.field, tasks.topic, paired.earlier, paired.later, paired.earlier_score,
    paired.later_score, paired.difference,
    paired.model as model_label,
    paired.model_config_hash
from paired
inner join tasks
    on paired.task_id = tasks.task_id
        and tasks.benchmark = $benchmark
        and tasks.dataset_revision = $revision
inner join entries
    on paired.model = entries.model
        and paired.model_config_hash = entries.model_config_hash
        and paired.later = entries.vintage
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
qualify
    row_number() over (
        partition by judging, entry
        order by difference * sign(mean_difference) desc, paired.task_id
    ) <= 10
order by judging <> $main, judging, model, difference * sign(mean_difference) desc, task_id
