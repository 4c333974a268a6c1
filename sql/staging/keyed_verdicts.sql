-- Verdicts with the keys that the models below group by. A judging is a judge with its parameters, template, grading
-- and judge trial; a series is one configured model, sampled in one vintage, under one judging.
select
    verdicts.verdict_id,
    verdicts.response_id,
    verdicts.criterion_id,
    verdicts.criterion_hash,
    verdicts.status,
    verdicts.value,
    verdicts.cost_usd,
    responses.trial,
    hash(
        responses.benchmark,
        responses.dataset_revision,
        responses.model,
        responses.model_config_hash,
        responses.vintage,
        verdicts.judge,
        verdicts.judge_config_hash,
        verdicts.template_hash,
        verdicts.grading,
        verdicts.judge_trial
    ) as series_id
from verdicts
inner join responses using (response_id)
