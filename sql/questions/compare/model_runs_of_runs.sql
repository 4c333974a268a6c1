-- One row: a run, and a model run that it made a verdict of.
with made as (
    select distinct
        run_id,
        response_id,
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial
    from staging.graded_verdicts
    where benchmark = $benchmark
),

final as (
    select distinct
        made.run_id,
        model_runs.model_run_id
    from made
    inner join responses using (response_id)
    inner join staging.model_runs
        using (
            benchmark, dataset_revision, model, model_config_hash, vintage,
            judge, judge_config_hash, template_hash, grading, judge_trial
        )
)

select * from final
