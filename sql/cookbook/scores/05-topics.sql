-- Which topics are hardest, over all models in their current vintages?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select benchmark, dataset_revision, split,
    label as topic,
    judge,
    list(distinct vintage order by vintage) as vintages,
    round(avg(mean_score), 3) as mean_score,
    arg_max(model, mean_score) as best_model,
    count(*) as models,
    max(n_tasks_wanted) as tasks
from breakdown_leaderboard
natural join judge
where breakdown = 'topic' and is_primary and not is_own_hard and is_latest
group by all
order by benchmark, dataset_revision, split, mean_score, topic
