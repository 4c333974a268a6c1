-- The criteria that gain most points under a condition, and those that lose
-- most, for each comparison under each judge.
-- begins with: entries, judgings, shown_tasks
with changed as (
    select judgings.judging,
        entries.entry as model,
        criteria.model as model_label,
        criteria.* exclude (model, judge, judge_config_hash, template_hash, grading, judge_trial)
    from condition_criteria as criteria
    semi join shown_tasks using (task_id)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where criteria.benchmark = $benchmark and criteria.dataset_revision = $revision and points <> 0
),

placed as (
    select *,
        row_number() over (
            partition by judging, model, shared_model, condition, points > 0
            order by abs(points) desc, task_id, criterion_id
        ) as place
    from changed
)

select judging, model, shared_model, condition, points,
    title as criterion,
    category as label,
    baseline_value, value, task_id, criterion_id, model_label, model_config_hash, baseline_model,
    baseline_config_hash, vintage
from placed
where place <= 10
order by judging <> $main, judging, shared_model, position, points desc, task_id, criterion_id
