-- How much there is to evaluate under each label on a board, the range of what can come out, and the value that a mean
-- is clipped at (equation 2): 0, or for a score that is not clipped minus infinity.
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
    if(definitions.clips_mean, 0, '-infinity'::double) as mean_floor,
    count(*) as n_tasks_wanted,
    sum(members.n_wanted)::bigint as n_criteria_wanted,
    fsum(members.lowest) as sum_lowest,
    fsum(members.highest) as sum_highest
from boards
inner join members using (benchmark, dataset_revision, task_id)
inner join score_definitions as definitions using (benchmark, score_name)
group by all
