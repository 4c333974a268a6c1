-- One row: a leaderboard row without a score, for a model that responded but has
-- no verdict under a judge configuration with verdicts on others.
--
-- built as: table
-- depends on: intermediate.breakdown_sizes, intermediate.judge_configs,
--     intermediate.task_set_members, temp.unjudged_runs, responses
with run_responses as (
    select task_set_members.task_set_id, responses.model, responses.model_config_hash,
        responses.vintage,
        avg(chars_alnum) filter (where status = 'ok') as mean_chars_alnum,
        avg(completion_tokens) filter (where status = 'ok') as mean_completion_tokens,
        -- One unknown cost makes the sum unknown.
        if(count(*) = count(cost_usd), exact_sum(cost_usd), null) as cost_usd
    from responses
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    group by all
)

select breakdown_sizes.benchmark, breakdown_sizes.dataset_revision, breakdown_sizes.split,
    breakdown_sizes.is_own_hard, breakdown_sizes.breakdown, breakdown_sizes.label,
    judge_configs.judge,
    judge_configs.judge_config_hash, judge_configs.template_hash, judge_configs.grading,
    judge_configs.judge_trial,
    chosen.vintage, chosen.model, chosen.model_config_hash, breakdown_sizes.score_name,
    breakdown_sizes.is_primary,
    0::bigint as n_tasks,
    0::bigint as n_tasks_full,
    breakdown_sizes.n_tasks_wanted,
    false as is_complete,
    chosen.n_trials,
    greatest(sum_lowest / n_tasks_wanted, mean_floor) as mean_lower,
    greatest(sum_highest / n_tasks_wanted, mean_floor) as mean_upper,
    0::double as coverage,
    run_responses.mean_chars_alnum, run_responses.mean_completion_tokens, run_responses.cost_usd,
    false as is_judged,
    chosen.is_latest, chosen.first_response_at
from temp.unjudged_runs as chosen
inner join intermediate.judge_configs using (judging_id)
inner join run_responses using (model, model_config_hash, vintage)
inner join intermediate.breakdown_sizes
    on run_responses.task_set_id = breakdown_sizes.task_set_id
        and chosen.benchmark = breakdown_sizes.benchmark
        and chosen.dataset_revision = breakdown_sizes.dataset_revision
        -- Under labels, models without a verdict have no row.
        and breakdown_sizes.breakdown = 'all'
