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
    select sides.* exclude (model, model_config_hash), responses.task_id,
        count(*) as n,
        count(*) filter (responses.status <> 'ok') as n_failures,
        count(*) - count(responses.cost_usd) as n_unpriced,
        avg(responses.chars_alnum) filter (responses.status = 'ok') as chars,
        avg(responses.completion_tokens) filter (responses.status = 'ok') as tokens,
        avg(responses.latency_s) filter (responses.status = 'ok') as latency,
        bool_or(responses.status = 'ok') as is_usable,
        case when n_unpriced = 0 and is_usable then avg(responses.cost_usd) end as usd
    from sides
    inner join responses using (benchmark, dataset_revision, vintage, model, model_config_hash)
    group by all
),

baselines as (
    from by_task
    where is_baseline
),

changed as (
    from by_task
    where not is_baseline
)

select
    task_set_id,
    samplings_id,
    coalesce(sum(changed.n), 0)::bigint as n_responses,
    coalesce(sum(baselines.n), 0)::bigint as baseline_n_responses,
    coalesce(sum(changed.n_failures), 0)::bigint as n_failed,
    coalesce(sum(baselines.n_failures), 0)::bigint as baseline_n_failed,
    coalesce(sum(changed.n_unpriced), 0)::bigint as n_unpriced,
    coalesce(sum(baselines.n_unpriced), 0)::bigint as baseline_n_unpriced,
    count(*) filter (changed.is_usable and baselines.is_usable) as n_tasks_with_response,
    round(exact_avg(case when baselines.chars is not null then changed.chars end), 9)
        as mean_chars_alnum,
    round(exact_avg(case when changed.chars is not null then baselines.chars end), 9)
        as baseline_mean_chars_alnum,
    round(exact_avg(case when baselines.tokens is not null then changed.tokens end), 9)
        as mean_completion_tokens,
    round(exact_avg(case when changed.tokens is not null then baselines.tokens end), 9)
        as baseline_mean_completion_tokens,
    round(exact_avg(case when baselines.usd is not null then changed.usd end), 12) as mean_cost_usd,
    round(exact_avg(case when changed.usd is not null then baselines.usd end), 12)
        as baseline_mean_cost_usd,
    round(exact_avg(case when baselines.latency is not null then changed.latency end), 6)
        as mean_latency_s,
    round(exact_avg(case when changed.latency is not null then baselines.latency end), 6)
        as baseline_mean_latency_s
from changed
full join baselines
    using (benchmark, dataset_revision, samplings_id, task_id)
inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
group by all
