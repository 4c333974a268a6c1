-- On which criteria do two judges differ, and what does each say?
with decided as (
    -- Current results, each judge as it graded.
    from verdict_details
    where is_current and grading <> 'ternary_as_binary' and judge_trial = 1
)

select task_id, first_verdict.model, first_verdict.vintage, first_verdict.trial,
    first_verdict.judge as judge_a,
    first_verdict.status as says_a,
    second_verdict.judge as judge_b,
    second_verdict.status as says_b,
    first_verdict.weight, first_verdict.title,
    first_verdict.explanation as because_a,
    second_verdict.explanation as because_b
from decided as first_verdict
inner join decided as second_verdict
    using (task_id, response_id, criterion_id, grading)
where first_verdict.judge < second_verdict.judge
    and first_verdict.value <> second_verdict.value
order by abs(first_verdict.weight) desc, task_id, first_verdict.model, first_verdict.trial,
    judge_a, judge_b
limit 50
