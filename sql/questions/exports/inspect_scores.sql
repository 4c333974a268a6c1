-- One row: a score of a response of a model run.
select
    response_id,
    score_name,
    value,
    value_lower,
    value_upper
from staging.response_scores
where
    model_run_id = $model_run
    and breakdown = 'all'
    and list_contains($response_ids::varchar[], response_id)
order by response_id, score_name
