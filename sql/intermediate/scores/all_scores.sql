-- One row: a score of a benchmark, with the expected one that judges with
-- probabilities also have: the primary score with probabilities for decisions.
--
-- built as: view
-- depends on: score_definitions
select *, false as is_expected from score_definitions
union all
select * replace ('expected_' || score_name as score_name, false as is_primary), true as is_expected
from score_definitions
where is_primary
