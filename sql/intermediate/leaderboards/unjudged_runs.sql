-- One row: a configured model in a vintage without a verdict under a judge
-- configuration that has verdicts on others in the same vintage; a model without
-- any verdict has its newest vintage here.
--
-- depends on: intermediate.model_runs, temp.sampled_runs
with lacking as (
    select sampled_runs.*, of_revision.judging_id,
        len(sampled) as n_trials,
        first_sampled_at as first_response_at,
        row_number() over (
            partition by benchmark, dataset_revision, judging_id, model, model_config_hash
            order by first_response_at desc, vintage desc
        ) = 1 as is_newest
    from temp.sampled_runs
    inner join (
        select distinct benchmark, dataset_revision, judging_id from intermediate.model_runs
    ) as of_revision using (benchmark, dataset_revision)
    anti join intermediate.model_runs
        using (benchmark, dataset_revision, model, model_config_hash, vintage, judging_id)
)

select * exclude (is_newest, sampled, first_sampled_at),
    is_newest
    and (benchmark, dataset_revision, model, model_config_hash, judging_id) not in (
        select (benchmark, dataset_revision, model, model_config_hash, judging_id)
        from intermediate.model_runs
    ) as is_latest
from lacking
where is_latest
    or (benchmark, dataset_revision, vintage, judging_id) in (
        select (benchmark, dataset_revision, vintage, judging_id)
        from intermediate.model_runs
    )
