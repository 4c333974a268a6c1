-- Which critical mistakes were made, by which model, and what did the judge
-- say?
select model, task_id, trial, judge, weight, title, explanation
from verdict_details
inner join (
    select benchmark, arg_min(severity, min_weight) as severity
    from severities
    group by benchmark
) as gravest using (benchmark, severity)
where status = 'met'
order by weight, model, task_id, trial, judge
limit 50
