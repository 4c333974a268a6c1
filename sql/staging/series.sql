with trials as (
    select
        series_id,
        list(distinct trial) as trials,
        any_value(verdict_id) as verdict_id
    from keyed_verdicts
    group by series_id
),

final as (
    select
        trials.series_id,
        -- What is compared with each other: all series that differ in nothing but the model.
        hash(
            verdicts.benchmark,
            verdicts.dataset_revision,
            verdicts.vintage,
            verdicts.judge,
            verdicts.judge_config_hash,
            verdicts.template_hash,
            verdicts.grading,
            verdicts.judge_trial
        ) as panel_id,
        verdicts.benchmark,
        verdicts.dataset_revision,
        verdicts.judge,
        verdicts.judge_config_hash,
        verdicts.template_hash,
        verdicts.grading,
        verdicts.judge_trial,
        verdicts.vintage,
        verdicts.model,
        responses.model_config_hash,
        trials.trials,
        len(trials.trials) as n_trials
    from trials
    inner join verdicts using (verdict_id)
    inner join responses using (response_id)
)

select * from final
