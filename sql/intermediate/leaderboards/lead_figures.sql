-- One row: a ranked model compared with the first one of its board (a task set and a
-- score, under a judge configuration, in one vintage or in the latest ones).
--
-- Of several first models, the first by name is compared. `basis` changes when a
-- value of a task does.
--
-- built as: view
-- depends on: intermediate.mean_scores, intermediate.ranking_positions
with ranked as (
    select positions.compared_key, positions.figure_id, mean_scores.basis,
        row_number() over (
            partition by positions.compared_key
            order by positions.rank, mean_scores.model, mean_scores.model_config_hash
        ) as position
    from intermediate.ranking_positions as positions
    inner join intermediate.mean_scores using (figure_id)
    where mean_scores.breakdown = 'all'
)

select
    leader.compared_key,
    leader.figure_id as leader_figure_id,
    follower.figure_id as other_figure_id,
    figure_key(['lead', leader.figure_id, follower.figure_id]) as figure_id,
    md5(concat_ws(chr(31), leader.basis, follower.basis)) as basis
from ranked as leader
inner join ranked as follower using (compared_key)
where leader.position = 1 and follower.position > 1
