-- Whom each grader favours: the score that it gives a model's answers minus the
-- score that the others give the same answers, and how far that is from what it
-- gives on average over the tasks of all models.
-- begins with: shown_answers, shown_tasks
with marked as (
    select
        shown_answers.entry as model,
        graders.grader, scores.response_id, scores.task_id,
        -- Three steps are compared with three, two with two.
        scores.grading = 'ternary' as is_ternary,
        scores.value
    from scores
    semi join shown_tasks on scores.task_id = shown_tasks.task_id
    inner join shown_answers using (response_id)
    inner join graders
        on
            graders.grader_id = hash(
                scores.judge, scores.judge_config_hash, scores.template_hash, scores.grading,
                scores.judge_trial
            )
    where scores.benchmark = $benchmark
        and scores.dataset_revision = $revision
        and scores.score_name = $score
        and scores.is_complete
        and graders.benchmark = $benchmark
        and graders.judge_trial = 1
),

-- Sums are in an order, so that the last digits of the same data are the same.
totals as (
    select response_id, is_ternary, sum(value order by value) as total, count(*) as n_graders
    from marked
    group by response_id, is_ternary
    having count(*) > 1
),

by_task as (
    select grader, model, task_id,
        count(*) as n_responses,
        avg(value order by response_id) as own_value,
        avg((total - value) / (n_graders - 1) order by response_id) as others_value
    from marked
    inner join totals using (response_id, is_ternary)
    group by grader, model, task_id
),

by_model as (
    select grader, model,
        avg(own_value order by task_id) as own_mean,
        avg(others_value order by task_id) as others_mean,
        own_mean - others_mean as difference,
        count(*) as n_tasks,
        sum(n_responses)::bigint as n_responses
    from by_task
    group by grader, model
),

by_grader as (
    select grader,
        count(*) as n_models,
        -- By tasks, so that a model with a single one moves nobody.
        sum(difference * n_tasks order by model) / sum(n_tasks) as mean_difference
    from by_model
    group by grader
)

select grader, model, own_mean, others_mean, difference,
    -- Of a single model there is nothing to be partial to.
    if(n_models > 1, difference - mean_difference, null) as favour,
    n_tasks,
    n_tasks < 50 as is_small,
    n_responses
from by_model
inner join by_grader using (grader)
order by grader, favour desc nulls last, model
