-- One row: a score of an imported answer under a judge whose verdicts were
-- imported.
select
    response_id,
    judge,
    judge_trial,
    score_name,
    value
from scores
where
    list_contains($responses::varchar[], response_id)
    and list_contains($judges::varchar[], judge)
    and judge_config_hash = 'imported'
    and grading = $grading
