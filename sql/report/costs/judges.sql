-- What each judge's verdicts on the answers of this report took and cost. Means
-- are over the verdicts of which the provider reported it; a sum is NULL as
-- soon as one cost is unknown. Imported verdicts are not here: nobody called.
-- begins with: judgings, shown_answers, shown_tasks
with made as (
    select judgings.judging, verdicts.response_id, verdicts.value, verdicts.attempts,
        verdicts.prompt_tokens, verdicts.cached_tokens, verdicts.completion_tokens,
        verdicts.cost_usd
    from verdicts
    semi join shown_tasks on verdicts.task_id = shown_tasks.task_id
    inner join shown_answers using (response_id)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $revision
        and verdicts.source = 'judged'
)

select
    judging as judged_by,
    count(*) as n_verdicts,
    count(*) filter (value is null) as n_failed,
    count(distinct response_id) as n_answers,
    avg(attempts) as attempts,
    avg(prompt_tokens) as prompt_tokens,
    sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as cached_share,
    avg(completion_tokens) as completion_tokens,
    round(1000 * exact_avg(cost_usd), 9) as thousand_usd,
    case when count(*) = count(cost_usd) then round(exact_sum(cost_usd), 9) end as cost_usd,
    count(*) - count(cost_usd) as n_unpriced
from made
group by judging
order by judging <> $main, judging
