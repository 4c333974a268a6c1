-- How much there is to evaluate in each field under each label on a board, and the range of what can come out.
with members as (
    select part_bounds.* exclude (cut, label), cut_members.cut, cut_members.label
    from part_bounds
    inner join cut_members using (benchmark, dataset_revision, task_id)
    where part_bounds.cut = 'all'
    union all by name
    select * from part_bounds
    where cut <> 'all'
)

select
    boards.board_id,
    boards.benchmark,
    boards.dataset_revision,
    boards.split,
    boards.is_own_hard,
    members.cut,
    members.label,
    members.score_name,
    tasks.field,
    count(*) as n_tasks_wanted,
    sum(members.n_wanted)::bigint as n_criteria_wanted,
    fsum(members.lowest) as sum_lowest,
    fsum(members.highest) as sum_highest
from boards
inner join members using (benchmark, dataset_revision, task_id)
inner join tasks using (benchmark, dataset_revision, task_id)
group by all
