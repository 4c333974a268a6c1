-- One row: the number of tasks to evaluate under a label on a task set, the
-- possible range of a score, and the value that its mean is clipped at (equation
-- 2): 0, or minus infinity for a score that is not clipped.
--
-- built as: table
-- depends on: intermediate.score_bounds, intermediate.task_breakdowns,
--     intermediate.task_set_members, intermediate.all_scores
with members as (
    select
        score_bounds.* exclude (breakdown, label),
        task_breakdowns.breakdown, task_breakdowns.label, task_breakdowns.is_annotated
    from intermediate.score_bounds
    inner join intermediate.task_breakdowns using (benchmark, dataset_revision, task_id)
    where score_bounds.breakdown = 'all'
    union all by name
    select * from intermediate.score_bounds
    where breakdown <> 'all'
)

select
    task_set_id,
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    score_name,
    is_primary,
    definitions.is_expected,
    if(definitions.clips_mean, 0, '-infinity'::double) as mean_floor,
    count(*) as n_tasks_wanted,
    count(*) filter (is_annotated) as n_tasks_annotated,
    sum(members.n_wanted)::bigint as n_criteria_wanted,
    exact_sum(members.lowest) as sum_lowest,
    exact_sum(members.highest) as sum_highest
from intermediate.task_set_members
inner join members using (benchmark, dataset_revision, task_id)
inner join intermediate.all_scores as definitions using (benchmark, score_name)
group by all
