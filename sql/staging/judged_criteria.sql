-- Every criterion of every response in every series, decided or not: the ground that coverage and details stand on.
-- A response that failed is here too: its criteria are wanted and not decided.
with wanted as (
    select
        responses.response_id,
        responses.status as response_status,
        responses.benchmark,
        responses.dataset_revision,
        responses.task_id,
        responses.trial,
        series.series_id,
        series.judging_id
    from responses
    inner join series
        using (benchmark, dataset_revision, model, model_config_hash, vintage)
    inner join tasks using (benchmark, dataset_revision, task_id)
    inner join field_trials
        on
            series.series_id = field_trials.series_id
            and tasks.field is not distinct from field_trials.field
    where
        tasks.is_admitted
        and list_contains(field_trials.trials, responses.trial)
),

final as (
    select
        wanted.series_id,
        wanted.response_id,
        wanted.benchmark,
        wanted.dataset_revision,
        wanted.task_id,
        wanted.trial,
        criteria.criterion_id,
        coalesce(criteria.category, '(none)') as category,
        criteria.weight,
        verdicts.verdict_id,
        verdicts.value,
        verdicts.cost_usd,
        case
            when verdicts.verdict_id is not null then verdicts.status
            when wanted.response_status <> 'ok' then 'no_response'
            else 'not_judged'
        end as status
    from wanted
    inner join criteria using (benchmark, dataset_revision, task_id)
    left join verdicts
        on
            wanted.response_id = verdicts.response_id
            and criteria.criterion_id = verdicts.criterion_id
            and criteria.content_hash = verdicts.criterion_hash
            and wanted.judging_id = hash(
                verdicts.judge,
                verdicts.judge_config_hash,
                verdicts.template_hash,
                verdicts.grading,
                verdicts.judge_trial
            )
)

select * from final
