-- One row: the decisions on a criterion over all complete responses of counted
-- trials under one judge configuration, and its correlation with the rest of its task.
--
-- built as: table
-- keeps: ranking_id in (from temp.unchanged_rankings)
-- depends on: intermediate.current_verdicts, intermediate.model_runs,
--     intermediate.response_points, temp.labelled_criteria, temp.unchanged_rankings
with cells as (
    select ranking_id, value, weight,
        hash(model) as model_key,
        hash(benchmark, dataset_revision, task_id, criterion_id, criterion_hash) as criterion_key,
        points - weight * value as rest_points
    from intermediate.current_verdicts
    inner join intermediate.response_points using (response_id, task_id)
    inner join intermediate.model_runs
        using (model_run_id, judging_id, benchmark, dataset_revision)
    anti join temp.unchanged_rankings using (ranking_id)
    where breakdown = 'all' and is_counted and n_decided = n_wanted
),

decided as (
    select ranking_id, criterion_key,
        count(distinct model_key) as n_models,
        count(distinct model_key) filter (value > 0) as n_models_met,
        count(*) as n_responses,
        avg(value) as met_share,
        -- The points of the criterion, correlated with the points of all others.
        if(
            stddev_pop(value) > 0 and stddev_pop(rest_points) > 0,
            exact_corr(sign(weight) * value, rest_points),
            null
        ) as rest_correlation
    from cells
    group by ranking_id, criterion_key
)

select
    ranking_id,
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    n_models,
    n_models_met,
    n_responses,
    met_share,
    rest_correlation,
    -- Fisher's z. The trials of a model are much alike, so models are counted.
    if(
        n_models > 3 and rest_correlation is not null,
        tanh(
            atanh(greatest(least(rest_correlation, 0.999999), -0.999999))
            + 1.96 / sqrt(n_models - 3)
        ),
        null
    ) as rest_correlation_high
from decided
inner join temp.labelled_criteria using (criterion_key)
where breakdown = 'all'
