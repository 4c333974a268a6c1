-- How was the response judged that lost most points?
with worst as (
    select response_id, judge, judge_config_hash, template_hash, judge_trial
    from scores
    inner join score_definitions using (benchmark, score_name)
    where is_primary and is_complete
    order by value, response_id
    limit 1
)

select model, task_id, trial, judge, weight, category, status, title, explanation
from verdict_details
inner join worst using (response_id, judge, judge_config_hash, template_hash, judge_trial)
order by weight * (case when weight > 0 then 1 - value else value end) desc
