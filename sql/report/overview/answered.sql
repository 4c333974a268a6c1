-- How many answers each model gave on the report's tasks, how many of them
-- nobody can use, and how many were judged.
-- begins with: judgings, shown_answers, shown_tasks
with judged as (
    select distinct verdicts.response_id
    from verdicts
    semi join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where verdicts.benchmark = $benchmark and verdicts.dataset_revision = $revision
)

select
    entry as model,
    count(*) as n_answers,
    count(*) filter (status <> 'ok') as n_failed,
    list(distinct status order by status) filter (status <> 'ok') as causes,
    count(judged.response_id) as n_judged
from shown_answers
semi join shown_tasks on shown_answers.task_id = shown_tasks.task_id
left join judged using (response_id)
group by entry
order by entry
