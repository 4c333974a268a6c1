-- One row: a figure of a leaderboard that has no interval yet for the values
-- that it rests on; of one breakdown and score, where they are given.
select
    mean_scores.task_set_id,
    mean_scores.model_run_id,
    mean_scores.breakdown,
    mean_scores.label,
    mean_scores.score_name,
    mean_scores.figure_id,
    mean_scores.basis,
    mean_scores.n_tasks
from staging.mean_scores
anti join (select * from intervals where method = $method) as drawn
    on
        mean_scores.figure_id = drawn.figure_id
        and mean_scores.basis = drawn.basis
where
    mean_scores.basis is not null
    and ($breakdown::varchar is null or mean_scores.breakdown = $breakdown)
    and ($score::varchar is null or mean_scores.score_name = $score)
order by task_set_id, breakdown, label, figure_id
