-- One row: a score of a benchmark, with the expected one that judges with
-- probabilities also have: the primary score with probabilities for decisions.
--
-- built as: view
-- depends on: score_definitions
select
    benchmark,
    score_name,
    numerator_negative,
    denominator_positive,
    denominator_negative,
    clips_mean,
    is_primary,
    false as is_expected
from score_definitions
union all
select
    benchmark,
    'expected_' || score_name as score_name,
    numerator_negative,
    denominator_positive,
    denominator_negative,
    clips_mean,
    false as is_primary,
    true as is_expected
from score_definitions
where is_primary
