-- One row: the sums over the decided criteria of a response under a judge
-- configuration, by breakdown and label: the whole rubric, each category,
-- severity, and further label of criteria. Only of model runs that changed.
--
-- depends on: intermediate.graded_verdicts, intermediate.wanted_responses,
--     temp.labelled_criteria, temp.unchanged_runs
with changed_responses as (
    select response_id, judging_id
    from intermediate.wanted_responses
    anti join temp.unchanged_runs using (model_run_id)
),

verdicts as (
    select
        hash(response_id) as response_key,
        hash(benchmark, dataset_revision, task_id, criterion_id, criterion_hash) as criterion_key,
        judging_id, value, probability,
        coalesce(cost_usd, members_usd) as cost_usd
    from intermediate.graded_verdicts
    semi join changed_responses using (response_id, judging_id)
)

select
    response_key,
    judging_id,
    label_key,
    coalesce(round(sum(weight * value), 12), 0) as points,
    coalesce(round(sum(weight * probability) filter (where value is not null), 12), 0)
        as expected_points,
    -- Fractional weights have few decimals, so the rounded sum does not depend on
    -- the order.
    coalesce(round(sum(weight) filter (where value is not null and weight > 0), 12), 0)
        as decided_positive,
    coalesce(round(sum(weight) filter (where value is not null and weight < 0), 12), 0)
        as decided_negative,
    coalesce(sum(value), 0) as n_met,
    -- A criterion without a weight cannot be scored, whatever the verdict.
    count(value) filter (where weight is not null) as n_decided,
    count(value) filter (where weight <> 0) as n_weighted,
    -- 0 of a positive criterion, 1 of a negative one.
    count(*) filter (where weight <> 0 and value = (weight < 0)::integer) as n_failed,
    exact_sum(cost_usd) as cost_usd,
    -- One unknown cost makes the sum unknown.
    count(*) > count(cost_usd) as is_cost_unknown
from verdicts
inner join temp.labelled_criteria using (criterion_key)
group by all
