-- One row: what became of a criterion over all complete responses under one
-- judging.
--
-- What became of each criterion over all models and trials under one judging,
-- and how it goes with the rest of its task.
--
-- depends on: staging.current_verdicts, staging.model_runs,
--     staging.response_points
with complete_responses as (
    select
        response_points.response_id,
        response_points.points,
        model_runs.ranking_id,
        model_runs.judging_id,
        model_runs.model
    from staging.response_points
    inner join staging.model_runs using (model_run_id)
    where
        response_points.breakdown = 'all'
        and response_points.n_decided = response_points.n_wanted
),

cells as (
    select
        complete_responses.ranking_id,
        complete_responses.model,
        current_verdicts.benchmark,
        current_verdicts.dataset_revision,
        current_verdicts.task_id,
        current_verdicts.criterion_id,
        current_verdicts.weight,
        current_verdicts.value,
        complete_responses.points - weight * value as rest_points
    from staging.current_verdicts
    inner join complete_responses using (response_id, judging_id)
),

grouped as (
    select
        ranking_id,
        benchmark,
        dataset_revision,
        task_id,
        criterion_id,
        count(distinct model) as n_models,
        count(distinct model) filter (where value > 0) as n_models_met,
        count(*) as n_responses,
        avg(value) as met_share,
        -- The points that the criterion gives against the points of all others.
        if(
            stddev_pop(value) > 0 and stddev_pop(rest_points) > 0,
            corr(sign(weight) * value, rest_points),
            null
        ) as rest_correlation
    from cells
    group by ranking_id, benchmark, dataset_revision, task_id, criterion_id
),

final as (
    select
        *,
        -- Fisher's z. The trials of a model are much alike, so models are what
        -- is counted.
        if(
            n_models > 3 and rest_correlation is not null,
            tanh(
                atanh(greatest(least(rest_correlation, 0.999999), -0.999999))
                + 1.96 / sqrt(n_models - 3)
            ),
            null
        ) as rest_correlation_high
    from grouped
)

select * from final
