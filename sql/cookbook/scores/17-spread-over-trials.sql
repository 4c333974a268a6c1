-- Where does a model's score change most from trial to trial?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
)

select model, vintage, judge, task_id,
    round(max(mean_score) - min(mean_score), 3) as spread,
    count(*) as trials,
    list(round(mean_score, 3) order by trial) as scores_by_trial
from scores
natural join judge
where is_primary and is_complete and is_latest
group by benchmark, dataset_revision, model, model_config_hash, vintage, judge, task_id
having count(*) > 1
order by spread desc, model, task_id
limit 50
