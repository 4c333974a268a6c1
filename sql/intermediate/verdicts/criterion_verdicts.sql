-- One row: the decisions on a criterion over all complete responses under one
-- judge configuration, and its correlation with the rest of its task.
--
-- depends on: intermediate.graded_verdicts, intermediate.model_runs,
--     intermediate.response_points, temp.labelled_criteria
with complete_responses as (
    select
        hash(response_points.response_id) as response_key,
        response_points.points, model_runs.ranking_id, model_runs.judging_id,
        hash(model_runs.model) as model_key
    from intermediate.response_points
    inner join intermediate.model_runs using (model_run_id)
    where response_points.breakdown = 'all' and response_points.n_decided = response_points.n_wanted
),

verdicts as (
    select
        hash(response_id) as response_key,
        hash(benchmark, dataset_revision, task_id, criterion_id, criterion_hash) as criterion_key,
        judging_id, value
    from intermediate.graded_verdicts
),

weights as (
    select criterion_key, weight
    from temp.labelled_criteria
    where breakdown = 'all'
),

cells as (
    select complete_responses.ranking_id, complete_responses.model_key, verdicts.criterion_key,
        weights.weight, verdicts.value,
        complete_responses.points - weight * value as rest_points
    from verdicts
    inner join weights using (criterion_key)
    inner join complete_responses using (response_key, judging_id)
),

by_model as (
    select ranking_id, criterion_key, bool_or(value > 0) as is_met
    from cells
    group by ranking_id, criterion_key, model_key
),

models as (
    select ranking_id, criterion_key, count(*) as n_models, count(*) filter (is_met) as n_models_met
    from by_model
    group by ranking_id, criterion_key
),

responses as (
    select ranking_id, criterion_key,
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
),

grouped as (
    select models.ranking_id, criteria.benchmark, criteria.dataset_revision, criteria.task_id,
        criteria.criterion_id,
        models.* exclude (ranking_id, criterion_key),
        responses.* exclude (ranking_id, criterion_key)
    from models
    inner join responses using (ranking_id, criterion_key)
    inner join (
        select distinct benchmark, dataset_revision, task_id, criterion_id, criterion_key
        from temp.labelled_criteria
    ) as criteria using (criterion_key)
)

select *,
    -- Fisher's z. The trials of a model are much alike, so models are
    -- counted.
    if(
        n_models > 3 and rest_correlation is not null,
        tanh(
            atanh(greatest(least(rest_correlation, 0.999999), -0.999999))
            + 1.96 / sqrt(n_models - 3)
        ),
        null
    ) as rest_correlation_high
from grouped
