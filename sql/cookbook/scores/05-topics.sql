-- Which topics are hardest, over all models?
select split,
    label as topic,
    round(avg(mean_score), 3) as mean_score,
    arg_max(model, mean_score) as best_model,
    count(*) as models,
    max(n_tasks_wanted) as tasks
from breakdown_leaderboard
where breakdown = 'topic' and is_primary and not is_own_hard
group by split, topic
order by split, mean_score
