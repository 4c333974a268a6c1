-- Which tasks of which model run did these runs make a verdict on?
with made as (
    select * from staging.graded_verdicts
    where benchmark = $benchmark and list_contains($runs::varchar[], run_id)
),

answers as (
    select response_id, model_config_hash from responses
),

final as (
    select
        made.run_id,
        model_runs.model_run_id,
        list(distinct made.task_id) as task_ids
    from made
    inner join answers using (response_id)
    inner join staging.model_runs
        using (
            benchmark, dataset_revision, model, model_config_hash, vintage,
            judge, judge_config_hash, template_hash, grading, judge_trial
        )
    group by made.run_id, model_runs.model_run_id
)

select * from final
