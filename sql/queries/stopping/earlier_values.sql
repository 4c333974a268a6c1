-- One row: a task, and the score that a model had in the latest night before
-- one, or in its base sampling. A night in which the judge was out of control
-- is no measure.
with vintages as (
    select vintage, min(created_at) as answered_at
    from responses
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and model = $model
        and model_config_hash = $model_config_hash
        and (
            vintage in ('base', $night)
            or vintage in (select night from runs where night is not null)
        )
    group by vintage
),

out_of_control as (
    select night as vintage
    from judge_drift
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and judge = $judge
        and judge_config_hash = $judge_config_hash
        and template_hash = $template_hash
        and grading = $grading
        and is_out_of_control
),

earlier as (
    select vintage, answered_at
    from vintages
    anti join out_of_control using (vintage)
    where vintage <> $night
        and answered_at < coalesce(
            (select tonight.answered_at from vintages as tonight where tonight.vintage = $night),
            'infinity'::timestamptz
        )
)

select task_scores.task_id, arg_max(task_scores.value, earlier.answered_at) as value
from task_scores
inner join earlier using (vintage)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and model = $model
    and model_config_hash = $model_config_hash
    and judge = $judge
    and judge_config_hash = $judge_config_hash
    and template_hash = $template_hash
    and grading = $grading
    and judge_trial = $judge_trial
    and score_name = $score
    and value is not null
group by task_scores.task_id
