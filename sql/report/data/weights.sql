-- How many criteria of each split have each weight, those of refused tasks too;
-- NULL is a weight that is no number.
-- begins with: shown_splits
with counted as (
    select split_members.split, criteria.weight, count(*) as n_criteria
    from split_members
    inner join shown_splits using (split)
    inner join criteria using (benchmark, dataset_revision, task_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
    group by all
)

select split, is_hard, weight, n_criteria,
    n_criteria / sum(n_criteria) over (partition by split) as share
from counted
inner join shown_splits using (split)
order by is_hard, split, weight nulls last
