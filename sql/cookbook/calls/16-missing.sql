-- What is not decided yet, and why?
select model, model_runs.judge, judged_criteria.status,
    count(*) as criteria,
    count(distinct judged_criteria.response_id) as responses
from intermediate.judged_criteria
inner join intermediate.model_runs using (model_run_id)
where judged_criteria.value is null
group by all
order by criteria desc, model, judge, status
