-- One row: a configured model, sampled in one vintage, under one judge configuration.
--
-- built as: table
-- depends on: intermediate.judge_configs, temp.decided_points, responses, tasks
with judged_trials as (
    select responses.benchmark, responses.dataset_revision, responses.model,
        responses.model_config_hash, responses.vintage, decided_points.judging_id,
        list_sort(list(distinct responses.trial)) as begun,
        min(responses.created_at) as first_response_at
    from temp.decided_points
    inner join responses on decided_points.response_key = hash(responses.response_id)
    where decided_points.breakdown = 'all'
    group by all
),

response_trials as (
    select responses.benchmark, responses.dataset_revision, responses.model,
        responses.model_config_hash, responses.vintage,
        list_sort(list(distinct responses.trial)) as sampled
    from responses
    inner join tasks using (benchmark, dataset_revision, task_id)
    where tasks.is_admitted
    group by all
)

select
    hash(
        benchmark, dataset_revision, model, model_config_hash, vintage, judging_id
    ) as model_run_id,
    -- Model runs that are compared with each other: only the model
    -- differs.
    hash(benchmark, dataset_revision, vintage, judging_id) as ranking_id,
    judging_id, judged_trials.benchmark, judged_trials.dataset_revision, judge_configs.judge,
    judge_configs.judge_config_hash, judge_configs.template_hash, judge_configs.grading,
    judge_configs.judge_trial,
    judged_trials.vintage, judged_trials.model, judged_trials.model_config_hash,
    -- A judge is wanted on every sampled trial, even if all responses
    -- failed; people and other imported graders only on trials that they
    -- began.
    if(judge_configs.is_imported, begun, sampled) as trials,
    len(trials) as n_trials,
    judged_trials.first_response_at,
    row_number() over (
        partition by benchmark, dataset_revision, judging_id, model, model_config_hash
        order by judged_trials.first_response_at desc, vintage desc
    ) = 1 as is_latest
from judged_trials
inner join response_trials using (benchmark, dataset_revision, model, model_config_hash, vintage)
inner join intermediate.judge_configs using (judging_id)
