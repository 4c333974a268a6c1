-- Equations 1 and 3 of the paper, in one place: every score of every response in every series, over the whole rubric
-- (is_overall) and over each of its categories. Undecided criteria give bounds, never a value.
with sums as (
    select
        series_id,
        response_id,
        benchmark,
        dataset_revision,
        task_id,
        trial,
        category,
        grouping(category) = 1 as is_overall,
        coalesce(sum(weight * value), 0) as points,
        coalesce(sum(weight) filter (where weight > 0), 0) as positive,
        coalesce(sum(weight) filter (where weight < 0), 0) as negative,
        coalesce(sum(weight) filter (where value is null and weight > 0), 0)
            as undecided_positive,
        coalesce(sum(weight) filter (where value is null and weight < 0), 0)
            as undecided_negative,
        -- What has no weight cannot be scored, whatever the verdict.
        count(value) filter (where weight is not null) as n_decided,
        count(*) as n_wanted
    from judged_criteria
    group by
        series_id, response_id, benchmark, dataset_revision, task_id, trial,
        grouping sets ((), (category))
),

ratios as (
    select
        sums.*,
        definitions.score_name,
        definitions.numerator_negative * negative as offset_points,
        definitions.denominator_positive * positive
        + definitions.denominator_negative * negative as denominator
    from sums
    inner join score_definitions as definitions using (benchmark)
),

final as (
    select
        series_id,
        response_id,
        task_id,
        trial,
        category,
        is_overall,
        score_name,
        case
            when n_decided = n_wanted
                then (points + offset_points) / denominator
        end as value,
        (points + undecided_negative + offset_points) / denominator
            as value_lower,
        (points + undecided_positive + offset_points) / denominator
            as value_upper,
        n_decided / n_wanted as coverage,
        n_decided = n_wanted as is_complete,
        n_decided,
        n_wanted
    from ratios
    -- A category without positive criteria has no `score`; its `min_normalized` exists.
    where denominator > 0
)

select * from final
