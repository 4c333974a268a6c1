-- The tasks that each entry gave a usable answer to, in any trial.
-- begins with: shown_answers, shown_tasks
select shown_answers.entry,
    list(distinct shown_answers.task_id order by shown_answers.task_id) as task_ids
from shown_answers
semi join shown_tasks on shown_answers.task_id = shown_tasks.task_id
where shown_answers.status = 'ok'
group by shown_answers.entry
order by shown_answers.entry
