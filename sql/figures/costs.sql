-- name: response_tokens
-- Mean tokens, length and time of a model's responses on each split. Tokens are
-- as reported (NULL if not reported). Failed responses are counted; only usable
-- ones have a length.
--
-- with: figures/shared/shown_responses
select
    split,
    is_hard,
    entry as model,
    avg(prompt_tokens) as prompt_tokens,
    sum(cached_tokens)
        / nullif(sum(prompt_tokens) filter (cached_tokens is not null), 0) as cached_share,
    avg(completion_tokens) as completion_tokens,
    avg(reasoning_tokens) as reasoning_tokens,
    avg(chars_alnum) filter (status = 'ok') as mean_chars_alnum,
    round(exact_avg(latency_s), 6) as latency_s,
    count(*) as n_responses,
    count(*) filter (status <> 'ok') as n_failed
from shown_responses
inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
inner join $shown_splits using (split)
where not is_own_hard
group by all
order by is_hard, split, completion_tokens desc nulls last, model;

-- name: costs
-- Cost of a response and cost of judging it, in US dollars, with the score, by
-- model, split and judge. Means are over responses of known cost; a sum is NULL
-- if one cost is unknown. Responses without any verdict have no judge and no score.
--
-- with: figures/shared/shown_runs, figures/costs/response_costs
with scored as (
    select judge_config, split, entry as model, mean_score, ci_low, ci_high, coverage
    from leaderboard
    inner join $shown_sets using (split)
    natural join shown_runs
    where score_name = $score
        and is_judged
        and (is_latest or $vintage is not null)
        and not is_own_hard
)

select
    judge_config,
    split,
    is_hard,
    model,
    mean_score,
    ci_low,
    ci_high,
    coverage,
    response_usd,
    verdicts_usd,
    response_usd + verdicts_usd as task_usd,
    all_responses_usd,
    n_responses,
    n_unpriced_responses
from scored
full join response_costs using (judge_config, split, model)
inner join $shown_splits using (split)
where scored.model is not null or judge_config is null
order by coalesce(judge_config <> $main, true), judge_config nulls last, is_hard, split,
    response_usd nulls last, model;

-- name: judge_costs
-- Tokens, time and cost of each judge's verdicts on the responses of this report.
-- Means are over verdicts with a reported value; a sum is NULL if one cost is
-- unknown. Imported verdicts are left out: they had no call.
--
-- with: revision/revision_verdicts, figures/shared/shown_responses, figures/shared/shown_tasks
select
    judge_config as judged_by,
    count(*) as n_verdicts,
    count(*) filter (value is null) as n_failed,
    count(distinct response_id) as n_responses,
    avg(attempts) as attempts,
    avg(prompt_tokens) as prompt_tokens,
    sum(cached_tokens)
        / nullif(sum(prompt_tokens) filter (cached_tokens is not null), 0) as cached_share,
    avg(completion_tokens) as completion_tokens,
    round(1000 * exact_avg(cost_usd), 9) as thousand_usd,
    case when count(*) = count(cost_usd) then round(exact_sum(cost_usd), 9) end as cost_usd,
    count(*) - count(cost_usd) as n_unpriced
from revision_verdicts
natural join $shown_judge_configs
semi join shown_tasks using (task_id)
semi join shown_responses using (response_id)
where source = 'judged'
group by judge_config
order by judge_config <> $main, judge_config;

-- name: spend
-- Calls, tokens and cost of all runs in this warehouse, with discarded attempts,
-- by purpose and model. Calls of unknown cost are counted, but are not in the
-- cost; it is NULL if no cost is known.
select
    purpose,
    called_model,
    sum(calls) as calls,
    sum(failed_calls) as failed_calls,
    sum(prompt_tokens) as prompt_tokens,
    sum(cached_tokens)
        / nullif(sum(prompt_tokens) filter (cached_tokens is not null), 0) as cached_share,
    sum(completion_tokens) as completion_tokens,
    round(known_cost(exact_sum(cost_usd), sum(unpriced_calls)), 9) as cost_usd,
    sum(unpriced_calls) as unpriced_calls,
    count(distinct run_id) as n_runs,
    min(day) as first_day,
    max(day) as last_day
from run_costs
group by purpose, called_model
order by cost_usd desc nulls last, purpose, called_model;

-- name: response_costs
-- One row: the cost of a model's responses on a split and of judging them;
-- without a judge configuration, the responses without any verdict.
--
-- with: figures/shared/shown_runs, figures/shared/shown_responses
with judged as (
    select judge_config, split, entry, response_usd,
        if(is_verdicts_usd_unknown, null, verdicts_usd) as verdicts_usd
    from intermediate.judged_responses
    inner join $shown_sets using (split, is_own_hard)
    natural join shown_runs
    where not is_own_hard
),

unjudged as (
    select split, entry, cost_usd as response_usd
    from shown_responses
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    inner join $shown_splits using (split)
    anti join judged using (entry)
    where not is_own_hard
)

select
    judge_config,
    split,
    entry as model,
    round(exact_avg(response_usd), 12) as response_usd,
    round(exact_avg(verdicts_usd), 12) as verdicts_usd,
    case
        when count(*) = count(response_usd) then round(exact_sum(response_usd), 9)
    end as all_responses_usd,
    count(*) as n_responses,
    count(*) - count(response_usd) as n_unpriced_responses
from (from judged union all by name from unjudged)
group by all;
