-- What an answer takes: tokens as the provider reported them (NULL where it
-- reported none), length and time, the mean over a model's answers on each
-- split. Failed answers are counted; only usable ones have a length.
-- begins with: shown_answers, shown_splits
select task_set_members.split, shown_splits.is_hard,
    shown_answers.entry as model,
    avg(prompt_tokens) as prompt_tokens,
    sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as cached_share,
    avg(completion_tokens) as completion_tokens,
    avg(reasoning_tokens) as reasoning_tokens,
    avg(chars_alnum) filter (status = 'ok') as mean_chars_alnum,
    round(exact_avg(latency_s), 6) as latency_s,
    count(*) as n_answers,
    count(*) filter (status <> 'ok') as n_failed
from shown_answers
inner join staging.task_set_members using (benchmark, dataset_revision, task_id)
inner join shown_splits using (split)
where not task_set_members.is_own_hard
group by task_set_members.split, shown_splits.is_hard, shown_answers.entry
order by is_hard, split, completion_tokens desc nulls last, model
