-- Equations 1 and 3 of the paper, in one place: every score of every response in every series, over its whole rubric
-- (cut `all`) and over each category and severity. Undecided criteria give bounds, never a value.
with ratios as (
    select
        response_parts.*,
        definitions.score_name,
        definitions.numerator_negative * negative as offset_points,
        definitions.denominator_positive * positive
        + definitions.denominator_negative * negative as denominator
    from response_parts
    inner join series using (series_id)
    inner join score_definitions as definitions using (benchmark)
),

final as (
    select
        series_id,
        response_id,
        task_id,
        field,
        trial,
        n_trials,
        cut,
        label,
        score_name,
        case
            when n_decided = n_wanted
                then (points + offset_points) / denominator
        end as value,
        (points + undecided_negative + offset_points) / denominator
            as value_lower,
        (points + undecided_positive + offset_points) / denominator
            as value_upper,
        (negative + offset_points) / denominator as lowest,
        (positive + offset_points) / denominator as highest,
        n_decided / n_wanted as coverage,
        n_decided = n_wanted as is_complete,
        n_met,
        n_decided,
        n_wanted
    from ratios
    -- A category without positive criteria has no `score`; its `min_normalized` exists.
    where denominator > 0
)

select * from final
