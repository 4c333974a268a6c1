-- On which criteria do two judges differ, and what does each say?
with decided as (
    -- Current results, each judge as it graded.
    from verdict_details
    where is_current and grading <> 'ternary_as_binary' and judge_trial = 1
)

select a.task_id, a.model, a.vintage, a.trial,
    a.judge as judge_a,
    a.status as says_a,
    b.judge as judge_b,
    b.status as says_b,
    a.weight, a.title,
    a.explanation as because_a,
    b.explanation as because_b
from decided as a
inner join decided as b
    on a.response_id = b.response_id
        and a.criterion_id = b.criterion_id
        and a.judge < b.judge
        and a.value <> b.value
order by abs(a.weight) desc, a.task_id, a.model, a.trial, judge_a, judge_b
limit 50
