-- The trials that each entry has.
-- begins with: shown_answers, shown_tasks
select distinct shown_answers.entry, shown_answers.trial
from shown_answers
semi join shown_tasks on shown_answers.task_id = shown_tasks.task_id
order by shown_answers.entry, shown_answers.trial
