-- How many criteria of each category changed between a condition and its
-- baseline, on each split and under each judge, and what they are worth.
-- begins with: entries, judgings, shown_splits
with counted as (
    select judgings.judging, members.split, shown_splits.is_hard,
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
    inner join shown_splits on members.split = shown_splits.split
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where criteria.benchmark = $benchmark
        and criteria.dataset_revision = $revision
        and not members.is_own_hard
    group by all
)

select * exclude (position)
from counted
order by judging <> $main, judging, is_hard, split, shared_model, position, label
