-- The lowest and highest value that a score of a task can take: what bounds a response that is not there.
with ratios as (
    select
        rubric_parts.*,
        definitions.score_name,
        definitions.numerator_negative * negative as offset_points,
        definitions.denominator_positive * positive
        + definitions.denominator_negative * negative as denominator
    from rubric_parts
    inner join score_definitions as definitions using (benchmark)
)

select
    benchmark,
    dataset_revision,
    task_id,
    cut,
    label,
    score_name,
    (negative + offset_points) / denominator as lowest,
    (positive + offset_points) / denominator as highest,
    n_wanted
from ratios
where denominator > 0
