-- Where does a model's score change most from trial to trial?
select model, judge, task_id,
    round(max(value) - min(value), 3) as spread,
    count(*) as trials,
    list(round(value, 3) order by trial) as values_by_trial
from scores
inner join score_definitions using (benchmark, score_name)
where is_primary and is_complete
group by benchmark, dataset_revision, model, model_config_hash, vintage, judge, judge_config_hash,
    template_hash, grading, judge_trial, task_id
having count(*) > 1
order by spread desc, model, judge, task_id
limit 50
