-- One row: a score's divisor over a task's criteria under one label, and the
-- lowest and highest value of the score.
--
-- This is the only definition of a divisor (equations 1 and 3, by the factors
-- that the benchmark declares). A divisor of 0 gives no row: a label
-- without positive criteria has no PRBench `score`.
--
-- built as: table
-- depends on: intermediate.all_scores, intermediate.rubric_weights
select
    benchmark,
    dataset_revision,
    task_id,
    breakdown,
    label,
    label_key,
    score_name,
    is_expected,
    definitions.numerator_negative * negative as offset_points,
    definitions.denominator_positive * positive
    + definitions.denominator_negative * negative as denominator,
    score_of(negative, offset_points, denominator) as lowest,
    score_of(positive, offset_points, denominator) as highest,
    n_wanted
from intermediate.rubric_weights
inner join intermediate.all_scores as definitions using (benchmark)
where (breakdown = 'all' or not is_expected) and denominator > 0
