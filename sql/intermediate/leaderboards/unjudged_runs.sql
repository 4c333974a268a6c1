-- One row: a configured model in a vintage without a verdict under a judge
-- configuration that has verdicts on others in the same vintage; a model without
-- any verdict has its newest vintage here.
--
-- depends on: intermediate.model_runs, temp.sampled_runs
select
    sampled_runs.* exclude (sampled, first_sampled_at),
    judging_id,
    len(sampled) as n_trials,
    first_sampled_at as first_response_at,
    not bool_or(model_run_id is not null) over of_model
    and row_number() over (of_model order by first_sampled_at desc, vintage desc) = 1 as is_latest
from temp.sampled_runs
inner join (
    select distinct benchmark, dataset_revision, judging_id from intermediate.model_runs
) as of_revision using (benchmark, dataset_revision)
left join (select * exclude (is_latest) from intermediate.model_runs)
    using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
window of_model as (
    partition by benchmark, dataset_revision, judging_id, model, model_config_hash
)
qualify model_run_id is null
    and (
        is_latest
        or bool_or(model_run_id is not null)
            over (partition by benchmark, dataset_revision, judging_id, vintage)
    )
