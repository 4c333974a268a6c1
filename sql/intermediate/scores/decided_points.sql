-- One row: what the decided criteria of a response under a judge configuration add up to,
-- by breakdown and label of the rubric.
--
-- Of each response under each judge configuration, what the decided criteria add up to,
-- over the whole rubric, over each category and severity, and over each further
-- label that criteria carry.
--
-- depends on: intermediate.graded_verdicts, temp.labelled_criteria
with verdicts as (
    select
        hash(response_id) as response_key,
        hash(benchmark, dataset_revision, task_id, criterion_id, criterion_hash) as criterion_key,
        judging_id, value, probability, cost_usd
    from intermediate.graded_verdicts
)

select response_key, judging_id, label_key,
    any_value(breakdown) as breakdown,
    coalesce(round(sum(weight * value), 12), 0) as points,
    coalesce(round(sum(weight * probability) filter (where value is not null), 12), 0)
        as expected_points,
    -- Weights that are no whole numbers have few decimals: in any order the sum
    -- is the same after rounding.
    coalesce(
        round(sum(weight) filter (where value is not null and weight > 0), 12),
        0
    )
        as decided_positive,
    coalesce(
        round(sum(weight) filter (where value is not null and weight < 0), 12),
        0
    )
        as decided_negative,
    coalesce(sum(value), 0) as n_met,
    -- What has no weight cannot be scored, whatever the verdict.
    count(value) filter (where weight is not null) as n_decided,
    exact_sum(cost_usd) as cost_usd,
    -- A cost that is not known makes the sum unknown, not smaller.
    count(*) > count(cost_usd) as is_cost_unknown
from verdicts
inner join temp.labelled_criteria using (criterion_key)
group by response_key, judging_id, label_key
