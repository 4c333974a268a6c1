-- The own hard selections that the report shows, and what leaderboards call
-- them (as `task_set_members` does): the latest of each field, if all tasks
-- that it took or chose from are among the report's.
-- begins with: shown_tasks
with considered as (
    select selection_id, field, task_id
    from hard_subset
    inner join staging.latest_selections using (benchmark, dataset_revision, field, selection_id)
    where benchmark = $benchmark and dataset_revision = $revision
    union
    select selection_id, field, task_id
    from hard_stability
    semi join staging.latest_selections using (selection_id)
    where benchmark = $benchmark and dataset_revision = $revision
)

select considered.selection_id, considered.field || ' (own hard)' as split
from considered
left join shown_tasks using (task_id)
group by all
having count(*) = count(shown_tasks.task_id)
order by split
