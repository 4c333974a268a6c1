-- The size of each split as ingested, refused tasks too. Quartiles are
-- interpolated.
-- begins with: shown_splits
with refused as (
    select distinct benchmark, dataset_revision, task_id
    from quarantine
),

members as (
    select split_members.split, tasks.expert, tasks.turns, tasks.has_reference_texts,
        tasks.n_criteria, tasks.negative_weight,
        refused.task_id is not null as is_refused
    from split_members
    inner join shown_splits using (split)
    inner join tasks using (benchmark, dataset_revision, task_id)
    left join refused using (benchmark, dataset_revision, task_id)
    where split_members.benchmark = $benchmark and split_members.dataset_revision = $revision
)

select split,
    count(*) as n_tasks,
    count(*) filter (is_refused) as n_refused,
    avg((expert = 'Expert')::integer) as expert_share,
    min(n_criteria) as criteria_min,
    quantile_cont(n_criteria, 0.25) as criteria_25,
    quantile_cont(n_criteria, 0.5) as criteria_50,
    quantile_cont(n_criteria, 0.75) as criteria_75,
    max(n_criteria) as criteria_max,
    sum(n_criteria) as n_criteria,
    avg((negative_weight < 0)::integer) as with_negative_share,
    min(turns) as turns_min,
    quantile_cont(turns, 0.25) as turns_25,
    quantile_cont(turns, 0.5) as turns_50,
    quantile_cont(turns, 0.75) as turns_75,
    max(turns) as turns_max,
    avg((turns > 1)::integer) as multi_turn_share,
    count(*) filter (has_reference_texts) as n_with_references
from members
inner join shown_splits using (split)
group by split, is_hard
order by is_hard, split
