-- The size of what was evaluated, in one row.
-- begins with: judgings, shown_answers, shown_tasks
with of_report as (
    select shown_answers.response_id, shown_answers.source, shown_answers.status,
        shown_answers.cost_usd
    from shown_answers
    semi join shown_tasks on shown_answers.task_id = shown_tasks.task_id
),

answered as (
    select
        count(*) as n_responses,
        count(*) filter (status <> 'ok') as n_responses_failed,
        count(*) filter (cost_usd is null and source = 'sampled') as n_responses_unpriced,
        exact_sum(cost_usd) as responses_usd
    from of_report
),

decided as (
    select
        count(*) as n_verdicts,
        count(*) filter (verdicts.value is null) as n_failed,
        exact_sum(verdicts.cost_usd) as verdicts_usd,
        count(*) filter (
            verdicts.cost_usd is null and verdicts.source = 'judged'
        ) as n_verdicts_unpriced
    from verdicts
    inner join of_report using (response_id)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
),

of_tasks as (
    select
        count(*) filter (is_admitted) as n_tasks,
        count(*) filter (not is_admitted) as n_refused,
        sum(n_criteria) filter (is_admitted) as n_criteria
    from tasks
    semi join shown_tasks on tasks.task_id = shown_tasks.task_id
    where benchmark = $benchmark and dataset_revision = $revision
)

select of_tasks.*, answered.*, decided.*
from of_tasks, answered, decided
