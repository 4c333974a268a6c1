-- Which important criteria does no model meet?
select
    field,
    topic,
    task_id,
    weight,
    n_models,
    n_responses,
    judge,
    title
from criterion_statistics
where is_never_met and weight >= 4
order by weight desc, field, task_id, judge
