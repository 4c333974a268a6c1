-- name: condition_changes
-- How many criteria of each category changed between a condition and its
-- baseline, on each split and under each judge, and what they are worth.
with counted as (
    select criteria.judging, members.split, shown_sets.is_hard,
        criteria.entry as model,
        criteria.shared_model, criteria.condition, criteria.position,
        criteria.category as label,
        count(*) as n_compared,
        count(*) filter (is_changed) as n_changed,
        count(*) filter (points > 0) as n_gained,
        count(*) filter (points < 0) as n_lost,
        coalesce(exact_sum(if(points > 0, points, null)), 0) as points_gained,
        coalesce(exact_sum(if(points < 0, points, null)), 0) as points_lost,
        exact_sum(points) as points_net
    from scoped_condition_criteria as criteria
    inner join intermediate.task_set_members as members using (benchmark, dataset_revision, task_id)
    inner join shown_sets
        on members.split = shown_sets.split and members.is_own_hard = shown_sets.is_own_hard
    group by all
)

select * exclude (position)
from counted
order by judging <> $main, judging, is_hard, split, shared_model, position, label;

-- name: condition_criteria
-- The criteria that gain most points under a condition, and those that lose
-- most, for each comparison under each judge.
with changed as (
    select entry as model, model as model_label, * exclude (entry, model)
    from scoped_condition_criteria
    semi join shown_members using (task_id)
    where points <> 0
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
    baseline_value, value, baseline_by_trial, by_trial, task_id, criterion_id, model_label,
    model_config_hash, baseline_model,
    baseline_config_hash, vintage
from placed
where place <= $n_criteria
order by judging <> $main, judging, shared_model, position, points desc, task_id, criterion_id;
