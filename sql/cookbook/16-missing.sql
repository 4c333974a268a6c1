-- What is not decided yet, and why?
select
    model,
    series.judge,
    judged_criteria.status,
    count(*) as criteria,
    count(distinct judged_criteria.response_id) as responses
from judged_criteria
inner join series using (series_id)
where judged_criteria.value is null
group by all
order by criteria desc, model, judge, status
