-- Which important criteria does no model meet?
select field, topic, task_id, weight, n_models, n_responses, judge, title
from criterion_statistics
where met_share = 0 and weight >= 4
order by weight desc, field, task_id, judge
