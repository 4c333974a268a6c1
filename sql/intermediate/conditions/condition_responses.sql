-- One row: length, cost and latency of the responses of a model under a
-- condition and under its baseline, on a task set.
--
-- Usable responses are averaged over a task's trials, then over the tasks that
-- have one on both sides; costs include failed responses. A value that is
-- unknown on one side is used on neither. Failures are counted on all tasks.
-- Means are rounded: their last digits depend on the order of threads.
--
-- built as: view
-- depends on: intermediate.condition_pairs, intermediate.task_set_members, responses
with sides as (
    select distinct samplings_id, benchmark, dataset_revision, vintage,
        unnest([false, true]) as is_baseline,
        unnest([model, baseline_model]) as model,
        unnest([model_config_hash, baseline_config_hash]) as model_config_hash
    from intermediate.condition_pairs
),

by_task as (
    select
        sides.* exclude (model, model_config_hash),
        responses.task_id,
        count(*) as n,
        count(*) filter (responses.status <> 'ok') as n_failures,
        count(*) - count(responses.cost_usd) as n_unpriced,
        avg(responses.chars_alnum) filter (responses.status = 'ok') as chars,
        avg(responses.completion_tokens) filter (responses.status = 'ok') as tokens,
        avg(responses.latency_s) filter (responses.status = 'ok') as latency,
        case when n_unpriced = 0 then avg(responses.cost_usd) end as usd,
        bool_or(responses.status = 'ok') as is_usable
    from sides
    inner join responses using (benchmark, dataset_revision, vintage, model, model_config_hash)
    group by all
),

counted as (
    select by_task.*, task_set_members.task_set_id
    from by_task
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
),

paired as (
    select
        coalesce(c.task_set_id, b.task_set_id) as task_set_id,
        coalesce(c.samplings_id, b.samplings_id) as samplings_id,
        coalesce(c.n, 0) as n_responses,
        coalesce(b.n, 0) as baseline_n_responses,
        coalesce(c.n_failures, 0) as n_failed,
        coalesce(b.n_failures, 0) as baseline_n_failed,
        coalesce(c.n_unpriced, 0) as n_unpriced,
        coalesce(b.n_unpriced, 0) as baseline_n_unpriced,
        c.is_usable and b.is_usable as is_both,
        case when is_both and b.chars is not null then c.chars end as chars,
        case when is_both and c.chars is not null then b.chars end as b_chars,
        case when is_both and b.tokens is not null then c.tokens end as tokens,
        case when is_both and c.tokens is not null then b.tokens end as b_out,
        case when is_both and b.latency is not null then c.latency end as s,
        case when is_both and c.latency is not null then b.latency end as b_s,
        case when is_both and b.usd is not null then c.usd end as usd,
        case when is_both and c.usd is not null then b.usd end as b_usd
    from (select * from counted where not is_baseline) as c
    full join (select * from counted where is_baseline) as b
        using (task_set_id, samplings_id, task_id)
)

select task_set_id, samplings_id,
    sum(n_responses)::bigint as n_responses,
    sum(baseline_n_responses)::bigint as baseline_n_responses,
    sum(n_failed)::bigint as n_failed,
    sum(baseline_n_failed)::bigint as baseline_n_failed,
    sum(n_unpriced)::bigint as n_unpriced,
    sum(baseline_n_unpriced)::bigint as baseline_n_unpriced,
    count(*) filter (is_both) as n_tasks_with_response,
    round(exact_avg(chars), 9) as mean_chars_alnum,
    round(exact_avg(b_chars), 9) as baseline_mean_chars_alnum,
    round(exact_avg(tokens), 9) as mean_completion_tokens,
    round(exact_avg(b_out), 9) as baseline_mean_completion_tokens,
    round(exact_avg(usd), 12) as mean_cost_usd,
    round(exact_avg(b_usd), 12) as baseline_mean_cost_usd,
    round(exact_avg(s), 6) as mean_latency_s,
    round(exact_avg(b_s), 6) as baseline_mean_latency_s
from paired
group by all
