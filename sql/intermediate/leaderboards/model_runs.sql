-- One row: a configured model, sampled in one vintage, under one judge configuration.
--
-- built as: table
-- depends on: intermediate.judge_configs, temp.coverage_bars, temp.judged_trials,
--     temp.sampled_runs, coverage_rules
with with_rules as (
    select judged_trials.*,
        coverage_rules.wanted_trials,
        coverage_bars.bar,
        coalesce(max(n_decided) filter (trial <= wanted_trials) over of_run, 0) as most_decided
    from temp.judged_trials
    left join coverage_rules using (benchmark, model, model_config_hash, vintage)
    left join temp.coverage_bars using (benchmark, model, model_config_hash)
    window of_run as (partition by model_run_id)
),

judged as (
    select model_run_id, benchmark, dataset_revision, model, model_config_hash, vintage, judging_id,
        wanted_trials, bar,
        list_sort(list(trial)) as begun_trials,
        -- A trial beyond the configured ones counts once it is as full as they are.
        list(trial) filter (n_decided >= bar * most_decided and trial > wanted_trials)
            as further_trials,
        min(first_response_at) as first_response_at,
        max(last_verdict_at) as last_verdict_at
    from with_rules
    group by all
)

select
    model_run_id,
    -- Model runs that are compared with each other: only the model differs.
    hash(benchmark, dataset_revision, vintage, judging_id) as ranking_id,
    judging_id,
    benchmark,
    dataset_revision,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    vintage,
    model,
    model_config_hash,
    if(judge_configs.is_imported, begun_trials, sampled_trials) as trials,
    -- A judge is wanted on every configured trial, even if all responses
    -- failed; without a configuration on every sampled one. People and other
    -- imported graders are wanted only on trials that they began.
    case
        when judge_configs.is_imported or wanted_trials is null then trials
        else list_sort(list_concat(range(1, wanted_trials + 1), further_trials))
    end as counted_trials,
    len(counted_trials) as n_trials,
    first_response_at,
    last_response_at,
    last_verdict_at,
    bar
from judged
inner join temp.sampled_runs using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join intermediate.judge_configs using (judging_id)
