-- On which criteria do two judges differ, and what does each say?
select a.task_id, a.model, a.trial,
    a.judge as judge_a,
    a.status as says_a,
    b.judge as judge_b,
    b.status as says_b,
    a.weight, a.title,
    a.explanation as because_a,
    b.explanation as because_b
from verdict_details as a
inner join verdict_details as b
    on a.response_id = b.response_id
        and a.criterion_id = b.criterion_id
        and a.judge < b.judge
        and a.value <> b.value
order by abs(a.weight) desc, a.task_id, a.model, a.trial, judge_a, judge_b
limit 50
