-- One row: a trial of a model run with any verdict that counts; `content` changes with
-- any of these verdicts.
--
-- depends on: intermediate.current_verdicts, responses
with verdict_counts as (
    select response_id, judging_id,
        -- A criterion without a weight cannot be scored, whatever the verdict.
        count(value) filter (where weight is not null) as n_decided,
        max(created_at) as last_verdict_at,
        sum(hash(criterion_id, value, probability, cost_usd)) as content
    from intermediate.current_verdicts
    group by all
)

select
    hash(
        benchmark, dataset_revision, model, model_config_hash, vintage, judging_id
    ) as model_run_id,
    benchmark,
    dataset_revision,
    model,
    model_config_hash,
    vintage,
    judging_id,
    trial,
    sum(n_decided) as n_decided,
    min(created_at) as first_response_at,
    max(last_verdict_at) as last_verdict_at,
    sum(hash(response_id, content)) as content
from verdict_counts
inner join responses using (response_id)
group by all
