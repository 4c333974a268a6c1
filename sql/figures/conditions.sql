-- name: condition_changes
-- How many criteria of each category changed between a condition and its
-- baseline, on each split and under each judge, and what they are worth.
with counted as (
    select judgings.judging, members.split, shown_sets.is_hard,
        entries.entry as model,
        criteria.shared_model, criteria.condition, criteria.position,
        criteria.category as label,
        count(*) as n_compared,
        count(*) filter (is_changed) as n_changed,
        count(*) filter (points > 0) as n_gained,
        count(*) filter (points < 0) as n_lost,
        coalesce(exact_sum(if(points > 0, points, null)), 0) as points_gained,
        coalesce(exact_sum(if(points < 0, points, null)), 0) as points_lost,
        exact_sum(points) as points_net
    from condition_criteria as criteria
    inner join staging.task_set_members as members using (benchmark, dataset_revision, task_id)
    inner join shown_sets
        on members.split = shown_sets.split and members.is_own_hard = shown_sets.is_own_hard
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where criteria.benchmark = $benchmark
        and criteria.dataset_revision = $revision
    group by all
)

select * exclude (position)
from counted
order by judging <> $main, judging, is_hard, split, shared_model, position, label;

-- name: condition_criteria
-- The criteria that gain most points under a condition, and those that lose
-- most, for each comparison under each judge.
with changed as (
    select judgings.judging,
        entries.entry as model,
        criteria.model as model_label,
        criteria.* exclude (model, judge, judge_config_hash, template_hash, grading, judge_trial)
    from condition_criteria as criteria
    semi join shown_members using (task_id)
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
    baseline_value, value, baseline_by_trial, by_trial, task_id, criterion_id, model_label, model_config_hash, baseline_model,
    baseline_config_hash, vintage
from placed
where place <= $n_criteria
order by judging <> $main, judging, shared_model, position, points desc, task_id, criterion_id;
