-- One row: a configured model, sampled in one vintage, under one judge configuration.
--
-- built as: table
-- depends on: intermediate.judge_configs, temp.decided_points, temp.sampled_runs, responses
with judged_trials as (
    select benchmark, dataset_revision, model, model_config_hash, vintage, judging_id,
        list_sort(list(distinct responses.trial)) as begun,
        min(responses.created_at) as first_response_at
    from temp.decided_points
    inner join responses on decided_points.response_key = hash(responses.response_id)
    where decided_points.breakdown = 'all'
    group by all
)

select
    hash(
        benchmark, dataset_revision, model, model_config_hash, vintage, judging_id
    ) as model_run_id,
    -- Model runs that are compared with each other: only the model
    -- differs.
    hash(benchmark, dataset_revision, vintage, judging_id) as ranking_id,
    judging_id, benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
    judge_trial, vintage, model, model_config_hash,
    -- A judge is wanted on every sampled trial, even if all responses
    -- failed; people and other imported graders only on trials that they
    -- began.
    if(judge_configs.is_imported, begun, sampled) as trials,
    len(trials) as n_trials,
    first_response_at,
    row_number() over (
        partition by benchmark, dataset_revision, judging_id, model, model_config_hash
        order by first_response_at desc, vintage desc
    ) = 1 as is_latest
from judged_trials
inner join temp.sampled_runs using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join intermediate.judge_configs using (judging_id)
