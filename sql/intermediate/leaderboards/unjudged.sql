-- One row: a leaderboard row without a score, for a model that responded but has
-- no verdict under a judge configuration with verdicts on others in the same vintage; a
-- model without any verdict on the task set has its newest vintage here.
--
-- built as: table
-- needs: temp.unjudged_runs
-- depends on: intermediate.breakdown_sizes, intermediate.current_vintages,
--     intermediate.judge_configs, intermediate.task_set_members, temp.unjudged_runs, responses
with run_responses as (
    select task_set_id, model, model_config_hash, vintage,
        avg(chars_alnum) filter (where status = 'ok') as mean_chars_alnum,
        avg(completion_tokens) filter (where status = 'ok') as mean_completion_tokens,
        -- One unknown cost makes the sum unknown.
        if(count(*) = count(cost_usd), exact_sum(cost_usd), null) as cost_usd
    from responses
    inner join intermediate.task_set_members using (benchmark, dataset_revision, task_id)
    group by all
),

judged_runs as (
    select distinct task_set_id, judging_id, model, model_config_hash
    from intermediate.current_vintages
)

select
    benchmark,
    dataset_revision,
    split,
    is_own_hard,
    breakdown,
    label,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    score_name,
    is_primary,
    0::bigint as n_tasks,
    0::bigint as n_tasks_full,
    n_tasks_wanted,
    false as is_complete,
    n_trials,
    greatest(sum_lowest / n_tasks_wanted, mean_floor) as mean_lower,
    greatest(sum_highest / n_tasks_wanted, mean_floor) as mean_upper,
    0::double as coverage,
    mean_chars_alnum,
    mean_completion_tokens,
    cost_usd,
    false as is_judged,
    judged_runs.model is null
    and row_number() over (
        partition by task_set_id, score_name, judging_id, model, model_config_hash
        order by first_response_at desc, vintage desc
    ) = 1 as is_latest,
    first_response_at
from temp.unjudged_runs
inner join intermediate.judge_configs using (judging_id)
inner join run_responses using (model, model_config_hash, vintage)
inner join intermediate.breakdown_sizes using (task_set_id, benchmark, dataset_revision)
left join judged_runs using (task_set_id, judging_id, model, model_config_hash)
-- Under labels, models without a verdict have no row.
where breakdown = 'all' and not is_expected
qualify is_latest or is_beside_others
