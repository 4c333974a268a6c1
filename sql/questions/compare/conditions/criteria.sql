-- Which criteria changed between a condition and its baseline on a task set:
-- how many of each category, and those that gain or lose most points.
select
    shared_model,
    condition,
    task_id,
    criterion_id,
    title,
    category,
    weight,
    baseline_value,
    value,
    baseline_by_trial,
    by_trial,
    points,
    is_changed
from condition_criteria as criteria
semi join staging.task_set_members as members
    on
        criteria.benchmark = members.benchmark
        and criteria.dataset_revision = members.dataset_revision
        and criteria.task_id = members.task_id
        and members.split = $split
        and members.is_own_hard = $is_hard
where
    criteria.benchmark = $benchmark
    and criteria.dataset_revision = $revision
    and criteria.judge = $judge
    and criteria.judge_config_hash = $judge_config_hash
    and criteria.template_hash = $template_hash
    and criteria.grading = $grading
    and criteria.judge_trial = $judge_trial
    and criteria.vintage = $vintage
order by shared_model, position, points, task_id, criterion_id
