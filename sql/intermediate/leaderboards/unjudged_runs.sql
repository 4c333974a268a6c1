-- One row: a configured model in a vintage without a verdict under a judge
-- configuration; `is_beside_others` if it has verdicts on others in the same vintage.
--
-- depends on: intermediate.model_runs, temp.sampled_runs
with judge_configs as (
    select distinct benchmark, dataset_revision, judging_id
    from intermediate.model_runs
)

select
    benchmark,
    dataset_revision,
    model,
    model_config_hash,
    vintage,
    judging_id,
    len(sampled_trials) as n_trials,
    first_sampled_at as first_response_at,
    bool_or(model_run_id is not null)
        over (partition by benchmark, dataset_revision, judging_id, vintage) as is_beside_others
from temp.sampled_runs
inner join judge_configs using (benchmark, dataset_revision)
left join intermediate.model_runs
    using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
qualify model_run_id is null
